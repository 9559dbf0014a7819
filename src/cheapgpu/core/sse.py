"""Reads a server-sent event stream: bytes in, events out, each with its place in the body.

Source of every rule here: WHATWG HTML, section 9.2.5 "Parsing an event stream" and section 9.2.6
"Interpreting an event stream". Nothing in this file knows what the events mean.

The reader does O(1) work per byte however the body is cut: a line that is not finished waits in a
buffer whose bytes have been searched, and no byte is searched twice for its line end.
"""

from typing import Literal

from msgspec import Struct

from cheapgpu.core.limits import ANSWER_BYTES, EVENT_BYTES, STREAM_EVENTS, STREAM_LINES

_BOM = b"\xef\xbb\xbf"
_LF = 0x0A
_SPACE = 0x20
_DEFAULT_TYPE = "message"
#: The fields that leave something to dispatch or to commit at the blank line.
_OPENING = (b"data", b"event", b"id")
#: A reconnection time with more digits is capped: int() of a very long text is not linear.
_RETRY_DIGITS = 18
#: Of fields that the standard ignores so many names are kept, and so much of each, in bytes.
_UNKNOWN_KEPT = 8
_UNKNOWN_BYTES = 64

#: Which limit made a reader stop before the end of the body.
Overrun = Literal["event-bytes", "stream-events", "stream-lines", "body-bytes"]


class Event(Struct, frozen=True, gc=False):
    """One dispatched event: what a browser would hand to its listener, and where it stood.

    `at` and `length` (bytes, in the body) span the event's block from its first field line through
    the blank line; the LF of a CRLF that ends the blank line is not counted, since the event is
    dispatched before that byte need have arrived.
    """

    #: The values of the data lines joined by LF, as sent (malformed UTF-8 is kept).
    data: bytes
    #: Offset of the block in the body, in bytes.
    at: int
    #: Length of the block, in bytes.
    length: int
    #: Offset in the body of the first byte of the first data line's value.
    data_at: int
    #: The `event` field, or "message".
    type: str = _DEFAULT_TYPE
    #: The stream's last event id once this event was dispatched.
    last_event_id: str = ""

    @property
    def text(self) -> str:
        """The data decoded as the standard says: malformed UTF-8 becomes U+FFFD."""
        return self.data.decode("utf-8", "replace")


class Discarded(Struct, frozen=True):
    """What stood at the end of the body without the blank line that would have dispatched it."""

    #: Offset in the body, in bytes.
    at: int
    #: The bytes that were never dispatched.
    raw: bytes
    #: What their data lines would have dispatched; None if there were none, nor the start of one.
    data: bytes | None


class EventReader:
    """Reads one body incrementally; its events do not depend on how the body was cut.

    `receive` takes bytes, `next_event` gives the events one by one, `finish` ends the body.

    Attributes: `comments` (comment lines so far), `retry` (reconnection time, ms, or None),
    `last_event_id`, `overrun` (the limit that was reached: reading has stopped there), `at` (bytes
    of the body whose lines have been read), `unknown` (the first few names of fields that the
    standard ignores: lines that say something, and nothing that is read).
    """

    __slots__ = (
        "_block_at",
        "_body",
        "_body_bytes",
        "_data",
        "_data_at",
        "_event_bytes",
        "_events_left",
        "_full",
        "_id",
        "_lines_left",
        "_next_cr",
        "_next_lf",
        "_position",
        "_raw",
        "_searched",
        "_skip_lf",
        "_started",
        "_stream_events",
        "_tail",
        "_type",
        "at",
        "comments",
        "last_event_id",
        "overrun",
        "retry",
        "unknown",
    )

    def __init__(
        self,
        last_event_id: str = "",
        *,
        event_bytes: int = EVENT_BYTES,
        stream_events: int = STREAM_EVENTS,
        stream_lines: int = STREAM_LINES,
        body_bytes: int = ANSWER_BYTES,
    ) -> None:
        """Start at the beginning of a body; `last_event_id` is carried from an earlier one."""
        self.comments = 0
        self.retry: int | None = None
        self.last_event_id = last_event_id
        self.overrun: Overrun | None = None
        self.unknown: tuple[bytes, ...] = ()
        self.at = 0
        self._event_bytes = event_bytes
        self._events_left = self._stream_events = stream_events
        self._lines_left = stream_lines
        self._body_bytes = body_bytes
        self._full = False
        # The bytes being read, how far they were read, how far they were searched for a line end
        # in vain, and where the next CR and the next LF stand (-1: nowhere).
        self._body = b""
        self._position = 0
        self._searched = 0
        self._next_cr = self._next_lf = -1
        # An unfinished line; `_body` is empty while it waits.
        self._tail: bytearray | None = None
        # The unfinished block: its lines as sent, what they said, and where it began.
        self._raw: list[bytes] | None = None
        self._data: list[bytes] | None = None
        self._data_at = 0
        self._type = ""
        self._id = last_event_id
        self._block_at = 0
        self._skip_lf = False
        self._started = False

    def receive(self, chunk: bytes) -> None:
        """Take the next bytes of the body. Call `next_event` until it has no more."""
        if self.overrun is not None:
            return
        tail = self._tail
        waiting = len(self._body) - self._position if tail is None else len(tail)
        room = self._body_bytes - self.at - waiting
        if len(chunk) > room:
            chunk = chunk[:room]
            self._full = True
        if tail is None:
            self._body = self._body[self._position :] + chunk if self._body else chunk
            self._position = self._searched = 0
        elif b"\n" in chunk or b"\r" in chunk:
            self._body = bytes(tail) + chunk
            self._position, self._searched, self._tail = 0, len(tail), None
        else:
            tail += chunk
            if not self._started and len(tail) >= len(_BOM):
                self._started = True
                if tail.startswith(_BOM):
                    del tail[: len(_BOM)]
                    self.at = self._block_at = len(_BOM)
            if self.at + len(tail) - self._block_at > self._event_bytes:
                self.overrun = "event-bytes"
            elif self._full:
                self.overrun = "body-bytes"
            return
        self._next_cr = self._body.find(b"\r", self._searched)
        self._next_lf = self._body.find(b"\n", self._searched)
        if not self._started:
            self._start()

    def _start(self) -> None:
        """9.2.5: one leading byte order mark is dropped; it may arrive in pieces."""
        body = self._body
        if len(body) < len(_BOM) and _BOM.startswith(body):
            return
        self._started = True
        if body.startswith(_BOM):
            self._position = self.at = self._block_at = len(_BOM)

    def next_event(self) -> Event | None:  # noqa: C901 -- one loop, in which each byte passes once
        """Return the next complete event, or None when more bytes are needed.

        A limit that is reached ends the reading for good: see `overrun`.
        """
        body = self._body
        position = self._position
        if self._skip_lf and position < len(body):
            position = self._pass_lf(body, position)
        event = None
        while event is None and self.overrun is None:
            start = max(position, self._searched)
            if self._next_lf < start and self._next_lf >= 0:
                self._next_lf = body.find(b"\n", start)
            end = self._next_lf
            cr = self._next_cr
            if cr < 0:
                if end < 0:
                    break
                following = end + 1
                if (
                    self._raw is None
                    and body.startswith(b"data: ", position)
                    and body[following : following + 1] == b"\n"
                ):
                    # The shape that engines send: one data line and a blank line, ended by LF.
                    at = self.at
                    self.at = self._block_at = at + following + 1 - position
                    data = body[position + 6 : end]
                    event = self._dispatch(data, at, following + 1 - position, at + 6)
                    position = following + 1
                    break
            elif 0 <= end < cr:
                following = end + 1
            else:
                end = cr
                following = self._after_cr(body, cr)
            if end == position:
                event = self._blank(self.at + 1)
            else:
                self._line(body, position, end, following)
            self.at += following - position
            position = following
            if self._raw is None and self.overrun is None:
                self._block_at = self.at
        self._position = position
        if event is None:
            self._wait(body, position)
        return event

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and return every event that they complete."""
        self.receive(chunk)
        events = []
        while (event := self.next_event()) is not None:
            events.append(event)
        return events

    def finish(self) -> Discarded | None:
        """End the body and return what was left without its blank line, if anything was.

        Complete comment, `retry` and unknown lines are not left over: they wait for nothing.
        """
        tail = bytes(self._tail or b"")
        if not tail and self._data is None and not self._type and self._id == self.last_event_id:
            return None
        lines = list(self._data or ())
        name, _, value = tail.partition(b":")
        if name == b"data" or (tail and b"data".startswith(tail)):
            lines.append(value.removeprefix(b" "))
        raw = b"".join(self._raw or ()) + tail
        return Discarded(at=self._block_at, raw=raw, data=b"\n".join(lines) if lines else None)

    @property
    def idle(self) -> bool:
        """Whether nothing waits: no line, no block, and the next byte begins a line."""
        return (
            self._raw is None
            and self._tail is None
            and not self._body
            and not self._skip_lf
            and self.overrun is None
        )

    @property
    def block_at(self) -> int:
        """Where the block begins that is being read, or in which a limit ended the reading."""
        return self._block_at

    def can_skip(self, chunk: bytes) -> bool:
        """Whether `chunk`, the next bytes of the body, begins a block while nothing waits."""
        if self._started:
            return self.idle
        if self.idle and chunk[:1] not in (b"", _BOM[:1]):
            self._started = True
        return self._started

    def skip_to(self, at: int, events: int) -> None:
        """Go on at `at` (bytes), after `events` in all: the caller read what is between.

        Only where `can_skip` was true of the next byte to read, for whole blocks of one data line
        with LF ends, and within the number of events that a stream may have.
        """
        self.at = self._block_at = at
        self._started = self._started or at > 0
        self._events_left = self._stream_events - events

    def stop(self) -> None:
        """End the reading, as the limit of the body does."""
        if self.overrun is None:
            self.overrun = "body-bytes"

    def _wait(self, body: bytes, position: int) -> None:
        """Keep the unfinished line, so that what was read can be let go."""
        if position < len(body):
            self._tail = bytearray(memoryview(body)[position:])
            if self.at + len(self._tail) - self._block_at > self._event_bytes:
                self.overrun = "event-bytes"
        if self._full and self.overrun is None:
            self.overrun = "body-bytes"
        self._body = b""
        self._position = self._searched = 0
        self._next_cr = self._next_lf = -1

    def _pass_lf(self, body: bytes, position: int) -> int:
        """9.2.6: CRLF is one line end, also where a read ended between the two."""
        self._skip_lf = False
        if body[position] == _LF:
            position += 1
            self.at += 1
            if self._raw is None:
                self._block_at = self.at
            else:
                self._raw.append(b"\n")
        return position

    def _after_cr(self, body: bytes, cr: int) -> int:
        """Return the offset of the line that follows the CR at `cr`, and look for the next CR."""
        following = cr + 1
        if following == len(body):
            self._skip_lf = True
        elif body[following] == _LF:
            following += 1
        self._next_cr = body.find(b"\r", following)
        return following

    def _line(self, body: bytes, start: int, end: int, following: int) -> None:
        """9.2.6, "process the field": the first colon splits name from value, one space goes."""
        if self.at + following - start - self._block_at > self._event_bytes:
            self.overrun = "event-bytes"
            return
        colon = body.find(b":", start, end)
        name = body[start:end] if colon < 0 else body[start:colon]
        if self._raw is not None:
            self._raw.append(body[start:following])
        elif name in _OPENING:
            # Comments and unknown fields open no block: heartbeats must not pile up.
            self._raw = [body[start:following]]
        value_at = end if colon < 0 else colon + 1
        if value_at < end and body[value_at] == _SPACE:
            value_at += 1
        if name == b"data":
            if self._data is None:
                self._data = []
                self._data_at = self.at + value_at - start
            self._data.append(body[value_at:end])
        elif colon == start:
            self.comments += 1
        else:
            self._field(name, body[value_at:end])
        if self._raw is None:
            self._count_line()

    def _field(self, name: bytes, value: bytes) -> None:
        if name == b"event":
            self._type = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry":
            if value.isdigit():  # of bytes: ASCII digits only, as asked
                digits = value.lstrip(b"0")
                capped = len(digits) > _RETRY_DIGITS
                self.retry = 10**_RETRY_DIGITS if capped else int(digits or b"0")
        elif len(self.unknown) < _UNKNOWN_KEPT:
            self.unknown = (*self.unknown, name[:_UNKNOWN_BYTES])

    def _blank(self, end: int) -> Event | None:
        """9.2.6, "dispatch the event": an id counts even where there is no data to dispatch."""
        self.last_event_id = self._id
        event = None
        if self._data is not None:
            data = b"\n".join(self._data)
            event = self._dispatch(data, self._block_at, end - self._block_at, self._data_at)
            self._data = None
        else:
            self._count_line()
        self._type = ""
        self._raw = None
        return event

    def _count_line(self) -> None:
        """Count a line that belongs to no event: there may not be endless ones."""
        self._lines_left -= 1
        if self._lines_left < 0:
            self.overrun = "stream-lines"

    def _dispatch(self, data: bytes, at: int, length: int, data_at: int) -> Event | None:
        if length > self._event_bytes:
            self.overrun = "event-bytes"
        elif self._events_left == 0:
            self.overrun = "stream-events"
        else:
            self._events_left -= 1
            kind = self._type or _DEFAULT_TYPE
            return Event(data, at, length, data_at, kind, self.last_event_id)
        self._block_at = at
        return None


def is_event_stream(content_type: str | None) -> bool:
    """Whether a content type is `text/event-stream`; case and parameters do not matter (9.2.5)."""
    return essence(content_type) == "text/event-stream"


def essence(content_type: str | None) -> str:
    """The lower-case type/subtype of a content type, without parameters (WHATWG MIME sniffing)."""
    return (content_type or "").partition(";")[0].strip(" \t\r\n").lower()
