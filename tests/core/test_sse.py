"""The event reader against the standard's own cases, whole and cut in every way."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheapgpu.core.sse import Discarded, Event, EventReader, essence, is_event_stream

CORPUS = json.loads(Path("tests/data/corpus/sse-cases.json").read_text())
CASES = CORPUS["cases"]


def read(
    pieces: list[bytes], last_event_id: str = "", **limits: int
) -> tuple[list[Event], Discarded | None, EventReader]:
    """Everything that a reader says of a body in these pieces."""
    reader = EventReader(last_event_id, **limits)
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events, reader.finish(), reader


def as_case(case: dict[str, Any], pieces: list[bytes]) -> tuple[dict[str, Any], list[Any]]:
    """What was read, in the terms of the cases, and where it stood."""
    events, discarded, reader = read(pieces, case.get("initial_last_event_id", ""))
    said = {
        "events": [
            {"type": event.type, "data": event.text, "last_event_id": event.last_event_id}
            for event in events
        ],
        "last_event_id": reader.last_event_id,
        "reconnection_time_ms": reader.retry,
        "comments": reader.comments,
        "discarded_at_eof": discarded is not None,
    }
    return said, [(event.at, event.length, event.data_at) for event in events] + [discarded]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_every_case_is_read_right_however_it_is_cut(case: dict[str, Any]) -> None:
    """Whole, byte by byte and split at every offset, a case gives the events that it must."""
    body = base64.b64decode(case["input_base64"])
    whole = as_case(case, [body])
    assert whole[0] == case["expected"]
    assert as_case(case, [body[n : n + 1] for n in range(len(body))]) == whole
    for offset in range(len(body)):
        assert as_case(case, [body[:offset], body[offset:]]) == whole


def test_the_corpus_is_whole() -> None:
    """All 147 stream cases and 19 response cases are here."""
    assert (len(CASES), len(CORPUS["response_cases"])) == (147, 19)


@pytest.mark.parametrize("case", CORPUS["response_cases"], ids=lambda case: case["name"])
def test_a_response_is_an_event_stream_only_by_its_status_and_type(case: dict[str, Any]) -> None:
    """200 with text/event-stream is read; other statuses and types are not, redirects included."""
    accepted = case.get("status", 200) == 200 and is_event_stream(case.get("content_type"))
    assert accepted == (case["accepted"] is True)


def test_the_essence_of_a_type_has_no_case_and_no_parameters() -> None:
    """A media type is compared without its case, its parameters and the space around it."""
    assert essence(" Text/Event-Stream ; charset=x") == "text/event-stream"
    assert essence(None) == ""


@given(
    st.lists(
        st.sampled_from(
            [b"data: a\n\n", b"data: b\r\n\r\n", b"data:c\rdata: d\r\r", b": x\n", b"id: 7\n\n"]
        )
    ),
    st.data(),
)
def test_an_event_stands_where_it_says(blocks: list[bytes], data: st.DataObject) -> None:
    """The bytes at an event's place begin with its first field and hold its first value."""
    body = b"".join(blocks)
    cut = data.draw(st.integers(0, len(body)))
    events, _, _ = read([body[:cut], body[cut:]])
    for event in events:
        block = body[event.at : event.at + event.length]
        assert block.lstrip().startswith(b"data")
        assert body[event.data_at :].startswith(event.data.split(b"\n")[0])
        assert event.at <= event.data_at < event.at + event.length


def test_a_mebibyte_byte_by_byte_is_read_in_one_go() -> None:
    """One long line and many short ones cost their bytes once, whatever the reads.

    Looking at a byte again for each byte that follows would take hours here, not a second.
    """
    size = 1 << 19
    reader = EventReader(event_bytes=2 * size)
    body = b"data: " + b"x" * size + b"\n\n" + b"data: y\n" * (size // 8) + b"\n"
    events = [event for n in range(len(body)) for event in reader.feed(body[n : n + 1])]
    assert [len(event.data) for event in events] == [size, size // 8 * 2 - 1]


@pytest.mark.parametrize("pieces", [1, 7, 10_000])
def test_an_event_over_the_limit_ends_the_reading(pieces: int) -> None:
    """An event longer than the limit is never dispatched, finished or not, and nothing after it."""
    body = b"data: a\n\ndata: " + b"x" * 100 + b"\n\ndata: c\n\n"
    cut = [body[n : n + pieces] for n in range(0, len(body), pieces)]
    events, _, reader = read(cut, event_bytes=100)
    assert [event.data for event in events] == [b"a"]
    assert reader.overrun == "event-bytes"
    assert reader.feed(b"data: d\n\n") == []


def test_many_lines_of_one_event_count_together() -> None:
    """The limit is on the whole event: its lines add up, unread ones too."""
    for body in (b"data: x\n" * 50, b"id: 1\n" + b"y: 2\n" * 50, b"data: x\ndata: " + b"y" * 99):
        assert read([body], event_bytes=100)[2].overrun == "event-bytes"
        assert read([body[:20], body[20:]], event_bytes=100)[2].overrun == "event-bytes"
    assert read([b"data: x\r" * 12 + b"\r"], event_bytes=100)[2].overrun is None
    assert read([b"data: x\r" * 12 + b"id: 12345\r\r"], event_bytes=104)[2].overrun == "event-bytes"


def test_more_events_than_the_limit_end_the_reading() -> None:
    """The event after the last allowed one is not dispatched, and is said to be too many."""
    events, _, reader = read([b"data: a\n\n" * 5], stream_events=3)
    assert (len(events), reader.overrun) == (3, "stream-events")
    assert read([b"data: a\n\n" * 3], stream_events=3)[2].overrun is None


@pytest.mark.parametrize("pieces", [1, 5, 1000])
def test_more_lines_than_the_limit_end_the_reading(pieces: int) -> None:
    """Comments and blank lines without end are no stream: they are read up to a limit."""
    body = b":\n\n" * 5 + b"data: a\n\n"
    cut = [body[n : n + pieces] for n in range(0, len(body), pieces)]
    events, _, reader = read(cut, stream_lines=9)
    assert (events, reader.overrun, reader.comments) == ([], "stream-lines", 5)
    assert len(read(cut, stream_lines=12)[0]) == 1


@pytest.mark.parametrize("pieces", [1, 5, 1000])
@pytest.mark.parametrize("limit", [0, 4, 9, 13, 27])
def test_a_body_is_read_up_to_its_limit(pieces: int, limit: int) -> None:
    """What stands whole before the limit of the body is read, however it came; nothing after it."""
    body = b"data: a\n\n" * 3 + b"data: b\n\n"
    cut = [body[n : n + pieces] for n in range(0, len(body), pieces)]
    events, _, reader = read(cut, body_bytes=limit)
    assert (len(events), reader.overrun) == (limit // 9, "body-bytes")
    assert read(cut, body_bytes=len(body))[2].overrun is None


def test_heartbeats_do_not_pile_up() -> None:
    """Comments and unknown fields without a blank line are forgotten at their line end."""
    reader = EventReader(event_bytes=100)
    for _ in range(1000):
        reader.feed(b": still here\nunknown: x\n")
    assert (reader.comments, reader.overrun, reader.finish()) == (1000, None, None)


def test_what_is_discarded_is_told_with_its_place() -> None:
    """Lines without their blank line are given back, with what they would have dispatched."""
    body = b"data: a\n\ndata: [DONE]"
    assert read([body])[1] == Discarded(at=9, raw=b"data: [DONE]", data=b"[DONE]")
    assert read([body + b"\n"])[1] == Discarded(at=9, raw=b"data: [DONE]\n", data=b"[DONE]")
    assert read([body, b"\nevent: x"])[1] == Discarded(
        at=9, raw=b"data: [DONE]\nevent: x", data=b"[DONE]"
    )
    assert read([b"data: x\r", b"\nid: 1"])[1] == read([b"data: x\r\nid: 1"])[1]
    assert read([b"\xef\xbb"])[1] == Discarded(at=0, raw=b"\xef\xbb", data=None)
    assert read([b"id: 1\n: pi"])[1] == Discarded(at=0, raw=b"id: 1\n: pi", data=None)
    assert read([b"dat"])[1] == Discarded(at=0, raw=b"dat", data=b"")
    assert read([b"\xef\xbb\xbf", b"data: x"])[1] == Discarded(at=3, raw=b"data: x", data=b"x")
    assert read([b"\xef", b"ab", b"c"])[1] == Discarded(at=0, raw=b"\xefabc", data=None)
    assert read([b"\xef\xbb\xbf"])[1] is None
    assert read([b"\xef", b"\xbb", b"\xbf", b"d"])[1] == Discarded(at=3, raw=b"d", data=b"")


def test_a_reconnection_time_has_a_limit() -> None:
    """A number of thousands of digits is capped instead of being computed."""
    assert read([b"retry: " + b"9" * 5000 + b"\n"])[2].retry == 10**18
    assert read([b"retry: 000\n"])[2].retry == 0


def test_blocks_read_elsewhere_are_counted() -> None:
    """A caller that reads plain blocks itself goes on where they end, within the same limits."""
    reader = EventReader(stream_events=2)
    assert reader.can_skip(b"data: a\n\n")
    reader.skip_to(9, 1)
    assert [event.at for event in reader.feed(b"data: b\n\ndata: c\n\n")] == [9]
    assert reader.overrun == "stream-events"
    assert not reader.can_skip(b"data: d\n\n")


@pytest.mark.parametrize("waiting", [b"da", b"data: x\n", b"x\r", b"\xef", b"\xef\xbb\xbf"])
def test_nothing_is_skipped_while_something_waits(waiting: bytes) -> None:
    """A line, a block, half a line end or a byte order mark must be read by the reader itself."""
    reader = EventReader()
    reader.feed(waiting)
    assert reader.can_skip(b"data: a\n\n") == (waiting == b"\xef\xbb\xbf")
    assert not EventReader().can_skip(b"\xef\xbb\xbfdata: a\n\n")
    assert not EventReader().can_skip(b"")
