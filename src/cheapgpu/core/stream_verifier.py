"""Verifies a stream as it passes: bytes in, verified events out, and at the end what was proved.

This object runs for every event of every buyer's stream, and inside `verify`. It judges bytes,
never how they were cut into reads. Three ways lead through it, each with the judgement of the last:

1. *The template* (`template`). An event that is the bytes of a verified one around another text.
2. *The familiar chunk* (`chunk_shape`). A content chunk with the members of the last one and the
   pinned identity, decoded by a type made for it.
3. *Everything else* (`stream_judge`), by the schema and the table of `stream`.

`StreamVerifier(fast=False)` takes only the third way; tests hold the other two to it.
"""

import codecs
from itertools import accumulate, repeat
from typing import Final

import msgspec

from cheapgpu.core.chunk_shape import Shape, shape_of
from cheapgpu.core.exchange import Ending
from cheapgpu.core.limits import ANSWER_BYTES, EVENT_BYTES, STREAM_EVENTS
from cheapgpu.core.sse import EventReader
from cheapgpu.core.stream import State, Step
from cheapgpu.core.stream_judge import StreamEvent, StreamJudge, StreamSummary
from cheapgpu.core.strict_json import too_deep
from cheapgpu.core.template import STRING_BYTES, Template, learn

__all__ = ["Ending", "StreamEvent", "StreamSummary", "StreamVerifier"]

#: How many templates a stream may try before the verifier stops learning from it.
_LESSONS: Final = 8
#: How many events a template looks ahead at once, at first and at most: bounds the work that is
#: thrown away where every other event needs another way.
_WINDOW: Final = (4, 64)
#: A chunk this short has no room for brackets beyond the limit beside its own members.
_FLAT_BYTES: Final = 400
_LF: Final = 0x0A

_decode: Final = msgspec.json.Decoder().decode
_DELTA: Final[Step] = "delta"


class StreamVerifier:
    """Judges one stream incrementally: `feed` its body bytes, then `finish`.

    `model` is the supplier model id that was sent (None: the first chunk's is pinned), `limit` the
    `max_completion_tokens` that was sent (None: not judged).
    """

    __slots__ = (
        "_between",
        "_body_bytes",
        "_event_bytes",
        "_fast",
        "_judge",
        "_lessons",
        "_reader",
        "_ready",
        "_received",
        "_shape",
        "_stream_events",
        "_template",
        "_utf8",
        "_utf8_waiting",
        "_window",
    )

    def __init__(  # noqa: PLR0913 -- what is expected, and the limits
        self,
        *,
        model: str | None = None,
        limit: int | None = None,
        fast: bool = True,
        event_bytes: int = EVENT_BYTES,
        stream_events: int = STREAM_EVENTS,
        body_bytes: int = ANSWER_BYTES,
    ) -> None:
        """Expect a stream of `model` with at most `limit` completion tokens."""
        self._judge = StreamJudge(model, limit)
        self._reader = EventReader(
            event_bytes=event_bytes, stream_events=stream_events, body_bytes=body_bytes
        )
        self._event_bytes = event_bytes
        self._stream_events = stream_events
        self._body_bytes = body_bytes
        self._received = 0
        # UTF-8 that is not ASCII: the decoder (None until some comes), and whether it waits for the
        # rest of a character. Once a byte was bad nothing more is decoded.
        self._utf8: codecs.IncrementalDecoder | None = None
        self._utf8_waiting = False
        # Whether the next byte begins an event, with nothing waiting. (Not at first: there may be a
        # byte order mark.)
        self._between = False
        self._fast = fast
        self._lessons = _LESSONS
        self._window = _WINDOW[0]
        self._shape: Shape | None = None
        self._template: Template | None = None
        # The template, while `_between`.
        self._ready: Template | None = None

    @property
    def state(self) -> State:
        """Where the stream stands in the table of `stream`."""
        return self._judge.state

    @property
    def events(self) -> int:
        """How many events were dispatched so far."""
        return self._judge.events

    @property
    def broken(self) -> bool:
        """Whether anything was found against what has passed so far."""
        return bool(self._judge.findings)

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """Take the next bytes of the body and return the events that they complete."""
        ready = self._ready
        if ready is not None:
            # The usual read: one event, the template around plain ASCII. The rest is in _feed.
            size = len(chunk)
            if (
                size >= ready.frame
                and chunk.startswith(ready.prefix)
                and chunk.endswith(ready.suffix)
            ):
                body = chunk[ready.text_at : size - ready.text_to]
                if body.translate(STRING_BYTES) == body and body.isascii() and self._count(size):
                    return [StreamEvent("delta", body, self._received - size, size)]
        shape = self._shape
        if shape is not None and self._between:
            # One event whose frame changes: the same reading without the loop of _plain_events. All
            # of it is decoded, so bytes that are not UTF-8 are found without looking for them.
            size = len(chunk)
            if (
                chunk.startswith(b"data: ")
                and chunk.find(b"\n") == size - 2
                and chunk[-1] == _LF
                and chunk.find(b"\r") < 0
                and size <= self._event_bytes
                and self._received + size <= self._body_bytes
                and self._judge.events < self._stream_events
            ):
                event = self._familiar(shape, chunk[6:-2], self._received, size)
                if event is not None:
                    self._received += size
                    return [event]
        return self._feed(chunk)

    def finish(self, ending: Ending) -> StreamSummary:
        """End the body and return what the stream proved.

        `whole`: it ended as its framing says, or we closed it after `[DONE]` and a grace. `cut`:
        the peer broke off. `stopped`: we did (a limit, the deadline); that is no fault of the peer.
        """
        judge, reader = self._judge, self._reader
        if reader.overrun is not None:
            ending = "stopped"
            judge.forget_utf8(reader.at)
        if self._utf8_waiting and ending != "stopped":
            judge.find("utf8", "UTF-8 throughout", "a character cut off at the end of the body")
        return judge.end(ending, reader.finish(), reader.comments)

    def _count(self, size: int) -> bool:
        """Count one whole event of `size` bytes, if it is within every limit."""
        judge = self._judge
        received = self._received + size
        if (
            size > self._event_bytes
            or received > self._body_bytes
            or judge.events >= self._stream_events
        ):
            return False
        self._received = received
        judge.events += 1
        return True

    def _feed(self, chunk: bytes) -> list[StreamEvent]:
        if not chunk or self._reader.overrun is not None:
            return []
        size = len(chunk)
        at = self._received
        events: list[StreamEvent]
        if at + size > self._body_bytes:
            events = self._feed(chunk[: self._body_bytes - at])
            self._reader.stop()
            return events
        if self._utf8_waiting or not chunk.isascii():
            self._check_utf8(chunk)
        self._received = at + size
        events = []
        reader, judge = self._reader, self._judge
        if self._between or reader.can_skip(chunk):
            position = 0
            if self._fast and chunk.find(b"\r") < 0:
                position = self._plain_events(chunk, at, events)
                if position == size:
                    self._ready = self._template
                    self._between = True
                    return events
                chunk = chunk[position:]
            reader.skip_to(at + position, judge.events)
        reader.receive(chunk)
        while (event := reader.next_event()) is not None:
            events.append(judge.judge(event.data, event.at, event.length, event.data_at))
        if judge.state != "open":
            self._forget()
        self._between = reader.idle
        self._ready = self._template if self._between else None
        return events

    def _plain_events(self, chunk: bytes, base: int, events: list[StreamEvent]) -> int:
        """Read whole events of one data line each from the start of `chunk`, which has no CR.

        Returns how many bytes were read; what follows is left to the reader.
        """
        position = 0
        judge = self._judge
        find, startswith = chunk.find, chunk.startswith
        while judge.events < self._stream_events:
            template = self._template
            if template is not None and startswith(template.prefix, position):
                length = self._run(template, chunk, position, base, events)
                if length:
                    position += length
                    continue
                self._template = None
            end = find(b"\n", position)
            if end < 0 or not startswith(b"\n", end + 1) or not startswith(b"data: ", position):
                break
            length = end + 2 - position
            if length > self._event_bytes:
                break
            data = chunk[position + 6 : end]
            at = base + position
            shape = self._shape
            event = self._familiar(shape, data, at, length) if shape is not None else None
            if event is None:
                event = judge.judge(data, at, length, at + 6)
                self._learn(chunk[position : end + 2], event)
            events.append(event)
            position = end + 2
        return position

    def _run(
        self,
        template: Template,
        chunk: bytes,
        position: int,
        base: int,
        events: list[StreamEvent],
    ) -> int:
        """Take the events from `position` that fit the template; return how many bytes they are."""
        judge = self._judge
        many = min(self._window, self._stream_events - judge.events)
        bodies, all_fit = template.texts(chunk, position, many)
        self._window = min(4 * self._window, _WINDOW[1]) if all_fit else _WINDOW[0]
        frame = template.frame
        lengths = [frame + len(body) for body in bodies]
        if max(lengths, default=0) > self._event_bytes:
            del lengths[next(n for n, size in enumerate(lengths) if size > self._event_bytes) :]
            del bodies[len(lengths) :]
        ats = accumulate(lengths, initial=base + position)
        events.extend(map(StreamEvent, repeat(_DELTA), bodies, ats, lengths))
        judge.events += len(bodies)
        return sum(lengths)

    def _familiar(self, shape: Shape, data: bytes, at: int, length: int) -> StreamEvent | None:
        """The event of a chunk that says nothing new but its text; None if it is any other.

        Equal to the full way: the type asks for every member of the shape and no other, the
        identity is the one that passed, and the shape tells that no name hides behind another.
        """
        try:
            chunk = shape.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        judge = self._judge
        content: str = chunk.choices[0].delta.content
        if (
            chunk.id == judge.id
            and chunk.created == judge.created
            and chunk.model == judge.model
            and (len(data) <= _FLAT_BYTES or not too_deep(data))
            and shape.hides_nothing(data, chunk, content)
        ):
            judge.events += 1
            return StreamEvent("delta", content, at, length)
        return None

    def _learn(self, block: bytes, event: StreamEvent) -> None:
        """Learn from an event that was judged the full way, if the next one may be like it."""
        if self._judge.state != "open":
            self._forget()
        elif self._lessons and event.text and event.step == "delta" and not event.broken:
            self._lessons -= 1
            try:
                self._template = learn(block, event.content)
                if self._lessons < _LESSONS - 1:
                    # The frame around the text changes from event to event: the members may not.
                    self._shape = shape_of(block[6:-2], _decode(block[6:-2]))
            except msgspec.DecodeError:
                pass  # a number that only the full way can read, such as 1e9 for an integer

    def _forget(self) -> None:
        """Take the full way from here on."""
        self._template = self._ready = self._shape = None
        self._lessons = 0

    def _check_utf8(self, chunk: bytes) -> None:
        """Profile, "SSE streaming": an event stream is UTF-8 (WHATWG 9.2.5), every byte of it.

        One finding is enough: what follows the first bad byte is not looked at.
        """
        decoder = self._utf8
        if decoder is None:
            decoder = self._utf8 = codecs.getincrementaldecoder("utf-8")("strict")
        elif decoder.errors != "strict":
            return
        waiting = len(decoder.getstate()[0])
        try:
            decoder.decode(chunk)
            self._utf8_waiting = bool(decoder.getstate()[0])
        except UnicodeDecodeError as error:
            at = self._received - waiting + error.start
            found = f"byte 0x{error.object[error.start]:02x}"
            self._judge.find("utf8", "UTF-8 throughout", found, at=at, length=1)
            decoder.errors = "ignore"
            self._utf8_waiting = False
            self._forget()
