"""How much of everything fits into one page, and which part of a long thing is shown.

A page must open anywhere, so all of it together is bounded: about a megabyte, whatever was judged.
What is left out is counted on the page; it is in the recording.
"""

from collections.abc import Iterable, Sequence
from typing import Final

#: Rows of 16 bytes in all byte views together, and in one: 64 KiB.
BYTE_ROWS: Final = 1600
BODY_ROWS: Final = 4096
#: Rows of all event tables together, and of one.
EVENT_ROWS: Final = 700
STREAM_ROWS: Final = 120
#: Rows, of either, of an answer that was not judged as a stream.
OTHER_ROWS: Final = 8
#: Marks of all drawings together.
MARKS: Final = 3000
#: Bytes of bodies shown as text: of all requests, of all plain answers, and of one of either.
REQUEST_BYTES: Final = 32 << 10
ANSWER_BYTES: Final = 64 << 10
BODY_BYTES: Final = 8 << 10
#: Exchanges with a section of their own, and endpoints.
EXCHANGES: Final = 200
RUNS: Final = 64
#: Places of all rules together, and of one.
PLACES: Final = 900
RULE_PLACES: Final = 60
#: Letters of a phrase, and header fields of a message.
PHRASE: Final = 300
FIELDS: Final = 24


def share(wanted: Sequence[int], total: int, most: int) -> list[int]:
    """Divide `total` fairly: who wants little gets it, who wants much shares what is left.

    Nobody gets more than was wanted, or than `most`.
    """
    given = [0] * len(wanted)
    left = total
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    for position, index in enumerate(order):
        given[index] = min(wanted[index], most, left // (len(order) - position))
        left -= given[index]
    return given


def choose(count: int, telling: Iterable[int], room: int) -> list[int]:
    """Choose up to `room` of `count` things in a row, in their order.

    All of them if they fit; else the beginning, the end, and the `telling` ones, the first of them
    first; what room is left goes to the beginning.
    """
    if count <= room:
        return list(range(count))
    edge = room // 4
    chosen = {*range(edge), *range(count - edge, count)}
    for index in telling:
        if len(chosen) >= room:
            break
        chosen.add(index)
    index = edge
    while len(chosen) < room:
        chosen.add(index)
        index += 1
    return sorted(chosen)
