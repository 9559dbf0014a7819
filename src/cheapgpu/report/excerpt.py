"""The bytes at fault, in the middle of what stands around them, with carets below.

Text is the usual form. Hex is used where text would hide the fault: line ends, control bytes, a
byte order mark, bytes that are not UTF-8.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from cheapgpu.report.style import Style, columns

_BOM: Final = b"\xef\xbb\xbf"
#: Where one event ends and another begins, or one header line: context does not reach further.
_BLANK_LINE: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
#: Bytes that text cannot show: control bytes other than line ends and tabs.
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
#: Bytes of context that are looked at on either side of a fault, per column: escapes are wider.
_REACH: Final = 4
_ROW: Final = 16
_NARROW_ROW: Final = 8
_END: Final = "the body ends here"


class _Cell(NamedTuple):
    """One character as it is shown, and the bytes of the body that it stands for."""

    at: int
    size: int
    shown: str
    width: int


def excerpt(body: bytes, at: int, length: int, style: Style, width: int) -> list[str]:
    """Return lines of at most `width` columns that show `length` bytes of `body` from `at` on."""
    at = min(at, len(body))
    end = min(at + length, len(body))
    hidden = _hidden(body, at, end)
    if hidden is not None:
        return _hex(body, *hidden, style, width)
    return _text(body, at, max(end, at), style, width)


def end_excerpt(body: bytes, at: int, style: Style, width: int) -> list[str]:
    """Return lines that show the end of a body in hex, from `at` on if there is room."""
    per_row = _per_row(width)
    start = max(at, len(body) - per_row)
    row = body[start:]
    shown = _hex_row(row, style, per_row)
    return [shown, *_end_caret(3 * len(row), style, width)]


def tail(body: bytes, style: Style, width: int) -> list[str]:
    """Return lines that show the end of a body as text."""
    cells = _cells(body, max(len(body) - _REACH * width, 0), len(body), style)
    left = _last(cells, width - 1, style, more=bool(cells) and cells[0].at > 0)
    return [left, *_end_caret(columns(left), style, width)]


def visible(data: bytes, style: Style) -> str:
    """Return bytes as text that is safe to print."""
    return "".join(cell.shown for cell in _cells(data, 0, len(data), style))


def _hidden(body: bytes, at: int, end: int) -> tuple[int, int] | None:
    """Where in the fault the bytes are that text cannot show; None if it shows the fault."""
    fault = body[at:end]
    if not fault:
        return None
    if not fault.strip(b"\r\n\t ") or fault[0] < 0x20:
        return at, end
    if fault.startswith(_BOM):
        return at, at + len(_BOM)
    control = _CONTROL.search(fault)
    if control is not None:
        return at + control.start(), at + control.end()
    try:
        fault.decode()
    except UnicodeDecodeError as error:
        return at + error.start, at + error.end
    return None


# --- text -----------------------------------------------------------------------------------------


def _text(body: bytes, at: int, end: int, style: Style, width: int) -> list[str]:
    reach = _REACH * width
    if end - at > 2 * reach:
        head = _cells(body, at, at + reach, style)
        last = _without_line_ends(_cells(body, end - reach, end, style), body)
        return _elided([*head, *last], style, width)
    block_start, block_end = _block(body, at, end, reach)
    fault = _without_line_ends(_cells(body, at, end, style), body)
    if sum(cell.width for cell in fault) > width:
        return _elided(fault, style, width)
    before = _cells(body, block_start, at, style)
    after_at = fault[-1].at + fault[-1].size if fault else at
    after = _cells(body, after_at, block_end, style)
    return _centred(before, fault, after, style, width)


def _centred(
    before: Sequence[_Cell],
    fault: Sequence[_Cell],
    after: Sequence[_Cell],
    style: Style,
    width: int,
) -> list[str]:
    marked = sum(cell.width for cell in fault)
    room = max(width - max(marked, 1), 0)
    right_wanted = sum(cell.width for cell in after)
    left_wanted = sum(cell.width for cell in before)
    left_room = min(left_wanted, max(room // 2, room - right_wanted))
    left = _last(before, left_room, style, more=False)
    right = _first(after, room - columns(left), style)
    caret = "^" * max(marked, 1)
    shown = "".join(cell.shown for cell in fault)
    return [left + shown + right, " " * columns(left) + style.paint(caret, "red")]


def _elided(fault: Sequence[_Cell], style: Style, width: int) -> list[str]:
    """A fault that is too long for one line: its beginning and its end."""
    room = width - len(style.ellipsis)
    left = _first(fault, room * 3 // 5, style, elide=False)
    right = _last(fault, room - columns(left), style, more=False, elide=False)
    carets = style.paint("^" * columns(left), "red") + " " * len(style.ellipsis)
    return [left + style.ellipsis + right, carets + style.paint("^" * columns(right), "red")]


def _first(cells: Sequence[_Cell], room: int, style: Style, *, elide: bool = True) -> str:
    """As many cells from the first on as fit, and a sign if there are more."""
    taken = _fitting(cells, room)
    if taken == len(cells):
        return "".join(cell.shown for cell in cells)
    if not elide:
        return "".join(cell.shown for cell in cells[:taken])
    if room < len(style.ellipsis):
        return ""
    taken = _fitting(cells, room - len(style.ellipsis))
    return "".join(cell.shown for cell in cells[:taken]) + style.ellipsis


def _last(
    cells: Sequence[_Cell], room: int, style: Style, *, more: bool, elide: bool = True
) -> str:
    """As many cells up to the last as fit, and a sign if there are more."""
    backwards = cells[::-1]
    taken = _fitting(backwards, room)
    if taken == len(cells) and not more:
        return "".join(cell.shown for cell in cells)
    if not elide:
        return "".join(cell.shown for cell in cells[len(cells) - taken :])
    if room < len(style.ellipsis):
        return ""
    taken = _fitting(backwards, room - len(style.ellipsis))
    return style.ellipsis + "".join(cell.shown for cell in cells[len(cells) - taken :])


def _fitting(cells: Sequence[_Cell], room: int) -> int:
    used = 0
    for taken, cell in enumerate(cells):
        used += cell.width
        if used > room:
            return taken
    return len(cells)


def _block(body: bytes, at: int, end: int, reach: int) -> tuple[int, int]:
    """The bytes around a fault that are worth showing: those of its own event."""
    start = max(at - reach, 0)
    for blank in _BLANK_LINE.finditer(body, start, at):
        start = blank.end()
    after = _BLANK_LINE.search(body, max(end - 1, 0), min(end + reach, len(body)))
    return start, after.end() if after else min(end + reach, len(body))


def _without_line_ends(fault: list[_Cell], body: bytes) -> list[_Cell]:
    """The fault without the line ends that close it: those are context, beside anything else."""
    kept = len(fault)
    while kept and body[fault[kept - 1].at] in b"\r\n":
        kept -= 1
    return fault[:kept] if kept else fault


def _cells(body: bytes, start: int, end: int, style: Style) -> list[_Cell]:
    """The characters of some bytes; a character that the cut would split is taken whole."""
    start, end = max(start, 0), min(end, len(body))
    for _ in range(3):
        start -= 0 < start < len(body) and body[start] & 0xC0 == 0x80
        end += end < len(body) and body[end] & 0xC0 == 0x80
    cells: list[_Cell] = []
    for letter in body[start:end].decode("utf-8", "surrogateescape"):
        if 0xDC80 <= ord(letter) <= 0xDCFF:
            size, shown = 1, f"<{ord(letter) - 0xDC00:02X}>"
        else:
            size = len(letter.encode())
            shown = "⏎" if letter == "\n" and not style.ascii else style.letter(letter)
        cells.append(_Cell(start, size, shown, columns(shown)))
        start += size
    return cells


# --- hex ------------------------------------------------------------------------------------------


def _hex(body: bytes, at: int, end: int, style: Style, width: int) -> list[str]:
    per_row = _per_row(width)
    end = min(end, at + per_row)
    before = min(at, (per_row - (end - at)) // 2)
    start = max(min(at - before, len(body) - per_row), 0)
    row = body[start : start + per_row]
    carets = " ".join("^^" for _ in range(at, end))
    return [_hex_row(row, style, per_row), " " * (3 * (at - start)) + style.paint(carets, "red")]


def _hex_row(row: bytes, style: Style, per_row: int) -> str:
    """Bytes in hex, and beside them as text, a column for a byte."""
    signs = "".join(
        chr(byte) if 0x20 <= byte < 0x7F else "⏎" if byte == 0x0A and not style.ascii else "."
        for byte in row
    )
    return f"{row.hex(' '):<{3 * per_row - 1}}   {signs}"


def _per_row(width: int) -> int:
    return _ROW if width >= 4 * _ROW + 2 else _NARROW_ROW


def _end_caret(column: int, style: Style, width: int) -> list[str]:
    caret = style.paint("^", "red")
    if column + 2 + len(_END) <= width:
        return [f"{' ' * column}{caret} {_END}"]
    if column > len(_END):
        return [f"{_END:>{column - 1}} {caret}"]
    return [" " * column + caret, _END]
