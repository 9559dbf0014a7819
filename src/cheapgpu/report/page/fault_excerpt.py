"""The bytes at fault as text, and what stands around them."""

import re
from dataclasses import dataclass
from typing import Final

from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import NOT_WHOLE, Finding
from cheapgpu.report.excerpt import visible
from cheapgpu.report.style import Style

#: Bytes before and after a fault, and of a fault at its beginning and its end.
_BEFORE: Final = 96
_AFTER: Final = 96
_HEAD: Final = 160
_LAST: Final = 64
_BLANK_LINE: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_STYLE: Final = Style()


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Pieces of a body, safe to show: before the fault, the fault, and after it."""

    before: str
    fault: str
    after: str
    #: Whether the body ends behind this.
    ends: bool


def excerpt_of(exchange: Exchange, finding: Finding) -> Excerpt | None:
    """Return the bytes that a finding is about; None where it is about none."""
    body = exchange.body
    if not body:
        return None
    if finding.at is None:
        if finding.rule not in NOT_WHOLE:
            return None
        before = visible(body[-_BEFORE:], _STYLE)
        more = "…" if len(body) > _BEFORE else ""
        return Excerpt(before=more + before, fault="", after="", ends=True)
    at = min(finding.at, len(body))
    end = min(at + finding.length, len(body))
    start, stop = _around(body, at, end)
    cut_before = "…" if start > 0 and not _begins_event(body, start) else ""
    cut_after = "…" if stop < len(body) and not _begins_event(body, stop) else ""
    return Excerpt(
        before=cut_before + visible(body[start:at], _STYLE),
        fault=_fault(body[at:end]),
        after=visible(body[end:stop], _STYLE) + cut_after,
        ends=stop == len(body),
    )


def _around(body: bytes, at: int, end: int) -> tuple[int, int]:
    """The bytes around a fault that are of its own event, as far as they are shown."""
    start = max(at - _BEFORE, 0)
    for blank in _BLANK_LINE.finditer(body, start, at):
        start = blank.end()
    after = _BLANK_LINE.search(body, max(end - 1, 0), min(end + _AFTER, len(body)))
    stop = after.end() if after else min(end + _AFTER, len(body))
    while start < at and body[start] in b"\r\n":
        start += 1
    # No character is cut in half.
    while 0 < start < at and body[start] & 0xC0 == 0x80:
        start += 1
    while end < stop < len(body) and body[stop] & 0xC0 == 0x80:
        stop -= 1
    return start, max(stop, end)


def _begins_event(body: bytes, offset: int) -> bool:
    return body[max(offset - 2, 0) : offset] in (b"\n\n", b"\r\r") or (
        body[max(offset - 4, 0) : offset] == b"\r\n\r\n"
    )


def _fault(data: bytes) -> str:
    if len(data) <= _HEAD + _LAST:
        return visible(data, _STYLE)
    return f"{visible(data[:_HEAD], _STYLE)} … {visible(data[-_LAST:], _STYLE)}"
