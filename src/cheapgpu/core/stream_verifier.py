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

from cheapgpu.core.chunk_shape import Decoder, decoder_of
from cheapgpu.core.exchange import Ending
from cheapgpu.core.limits import ANSWER_BYTES, EVENT_BYTES, STREAM_EVENTS
from cheapgpu.core.messages import FLAT_CHUNK, hides_nothing
from cheapgpu.core.sse import EventReader
from cheapgpu.core.stream import State, Step
from cheapgpu.core.stream_judge import StreamEvent, StreamJudge, StreamSummary
from cheapgpu.core.strict_json import too_deep
from cheapgpu.core.template import ASCII_STRING_BYTES, Template, is_string_body, learn

__all__ = ["Ending", "StreamEvent", "StreamSummary", "StreamVerifier"]

#: How many templates a stream may try before the verifier stops learning from it.
_LESSONS: Final = 8
#: How many events a template looks ahead at once, at least and at most: bounds the work that is
#: thrown away where every other event needs another way.
_WINDOW: Final = (4, 64)
_LF: Final = 0x0A
_CR: Final = 0x0D

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
        "_decoder",
        "_event_bytes",
        "_fast",
        "_judge",
        "_lessons",
        "_reader",
        "_received",
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
        # What reads the bytes that no quicker way can; None until there are some.
        self._reader: EventReader | None = None
        self._event_bytes = event_bytes
        self._stream_events = stream_events
        self._body_bytes = body_bytes
        self._received = 0
        # UTF-8 that is not ASCII: the decoder (None until some comes), and whether it waits for the
        # rest of a character. Once a byte was bad nothing more is decoded.
        self._utf8: codecs.IncrementalDecoder | None = None
        self._utf8_waiting = False
        self._fast = fast
        # Whether the next byte begins an event, with nothing waiting, for a quicker way to read.
        self._between = fast
        self._lessons = _LESSONS
        self._window = _WINDOW[1]
        self._template: Template | None = None
        self._decoder: Decoder | None = None

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
        judge, size, at = self._judge, len(chunk), self._received
        if not (
            self._between
            and size <= self._event_bytes
            and at + size <= self._body_bytes
            and judge.events < self._stream_events
        ):
            return self._feed(chunk)
        template = self._template
        if template is not None and size < template.two:
            # The usual read: one event, the template around plain ASCII. The rest is in _feed.
            body = chunk[template.text_at : size - template.text_to]
            if body.join(template.ends) == chunk:
                if body.translate(ASCII_STRING_BYTES) == body:
                    self._received = at + size
                    judge.events += 1
                    return [StreamEvent("delta", body, at, size)]
            elif self._decoder is not None and chunk.startswith(template.prefix):
                self._template = None  # the frame changes: looking for it costs more than it saves
        if chunk.startswith(b"data: ") and chunk.endswith(b"\n\n"):
            # One event of another kind: the same reading without the loop of _plain_events.
            data = chunk[6:-2]
            if _LF not in data and _CR not in data:
                # A familiar chunk was decoded whole, so that it is UTF-8; others are looked at.
                event = self._familiar(data, at, size)
                if event is None and data.isascii():
                    event = self._unfamiliar(data, at, size)
                if event is not None:
                    self._received = at + size
                    return [event]
        return self._feed(chunk)

    def pass_text(self, ends: tuple[bytes, bytes], text: bytes) -> bool:
        """As `pass_texts` for one text; quicker where that is plain ASCII without escapes."""
        template, judge = self._template, self._judge
        if text.translate(ASCII_STRING_BYTES) != text:
            return self.pass_texts(ends, [text])
        if template is None or not self._between or template.ends != ends:
            return False
        size = template.frame + len(text)
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

    def pass_texts(self, ends: tuple[bytes, bytes], texts: list[bytes]) -> bool:
        """Take whole events that are `texts` between `ends`, if they fit the template; else none.

        For those who write a stream themselves: the judgement of `feed` for the same bytes, without
        taking them apart again. What is looked at is what the template looks at (`template`): that
        the frame is the verified one, that each text is the body of a JSON string, its UTF-8, and
        every limit. False: nothing was taken, `feed` the bytes.
        """
        template, judge = self._template, self._judge
        if template is None or not self._between or template.ends != ends:
            return False
        together = b"".join(texts)
        if together.translate(ASCII_STRING_BYTES) != together:
            try:
                fit = all(is_string_body(text) and text.decode() is not None for text in texts)
            except UnicodeDecodeError:
                return False
            if not fit:
                return False
        size = len(together) + template.frame * len(texts)
        if (
            size > self._event_bytes
            or self._received + size > self._body_bytes
            or judge.events + len(texts) > self._stream_events
        ):
            return False
        self._received += size
        judge.events += len(texts)
        return True

    def finish(self, ending: Ending) -> StreamSummary:
        """End the body and return what the stream proved.

        `whole`: it ended as its framing says, or we closed it after `[DONE]` and a grace. `cut`:
        the peer broke off. `stopped`: we did (a limit, the deadline); that is no fault of the peer.
        """
        judge, reader = self._judge, self._reader
        if reader is not None and reader.overrun is not None:
            ending = "stopped"
            judge.forget_utf8(reader.block_at)
        if self._utf8_waiting and ending != "stopped":
            judge.find("utf8", "UTF-8 throughout", "a character cut off at the end of the body")
        if reader is None:
            return judge.end(ending, None, 0)
        return judge.end(ending, reader.finish(), reader.comments)

    def _feed(self, chunk: bytes) -> list[StreamEvent]:
        """Take any bytes: whole events by the quicker ways, as far as they go, then the reader."""
        if not chunk or (self._reader is not None and self._reader.overrun is not None):
            return []
        size = len(chunk)
        at = self._received
        if at + size > self._body_bytes:
            first = self._feed(chunk[: self._body_bytes - at])
            self._reader_from(self._received).stop()
            return first
        if self._utf8_waiting or not chunk.isascii():
            self._check_utf8(chunk)
        self._received = at + size
        events: list[StreamEvent] = []
        judge = self._judge
        position = 0
        if self._between and _CR not in chunk:
            position = self._plain_events(chunk, at, events)
            if position == size:
                return events
        reader = self._reader_from(at + position)
        reader.receive(chunk[position:])
        while (event := reader.next_event()) is not None:
            events.append(judge.judge(event.data, event.at, event.length, event.data_at))
        if judge.state != "open":
            self._forget()
        self._between = self._fast and reader.idle
        return events

    def _reader_from(self, at: int) -> EventReader:
        """The reader, told that the quicker ways read what came before `at`, if they did."""
        reader = self._reader
        if reader is None:
            reader = self._reader = EventReader(
                event_bytes=self._event_bytes,
                stream_events=self._stream_events,
                body_bytes=self._body_bytes,
            )
        if self._between:
            reader.skip_to(at, self._judge.events)
        return reader

    def _plain_events(self, chunk: bytes, base: int, events: list[StreamEvent]) -> int:
        """Read whole events of one data line each from the start of `chunk`, which has no CR.

        Returns how many bytes were read; what follows is left to the reader.
        """
        position = 0
        judge = self._judge
        find, startswith = chunk.find, chunk.startswith
        while judge.events < self._stream_events:
            end = find(b"\n", position)
            if end < 0 or not startswith(b"\n", end + 1) or not startswith(b"data: ", position):
                break
            template = self._template
            if template is not None and startswith(template.prefix, position):
                length = self._run(template, chunk, position, base, events)
                if length:
                    position += length
                    continue
                self._template = None
            length = end + 2 - position
            if length > self._event_bytes:
                break
            data = chunk[position + 6 : end]
            at = base + position
            events.append(self._familiar(data, at, length) or self._unfamiliar(data, at, length))
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
        if len(chunk) > self._event_bytes and max(lengths, default=0) > self._event_bytes:
            del lengths[next(n for n, size in enumerate(lengths) if size > self._event_bytes) :]
            del bodies[len(lengths) :]
        ats = accumulate(lengths, initial=base + position)
        events.extend(map(StreamEvent, repeat(_DELTA), bodies, ats, lengths))
        judge.events += len(bodies)
        return sum(lengths)

    def _familiar(self, data: bytes, at: int, length: int) -> StreamEvent | None:
        """The event of a chunk that says nothing new but its text; None if it is any other.

        Equal to the full way: the type of the decoder asks for every member of a chunk that passed
        and for no other, the identity is the one that passed, it is no deeper than our limit, and
        no name hides behind another.
        """
        if self._decoder is None:
            return None
        try:
            chunk = self._decoder(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        judge = self._judge
        if (
            chunk.id == judge.id
            and chunk.created == judge.created
            and chunk.model == judge.model
            and (len(data) <= FLAT_CHUNK or not too_deep(data))
            and hides_nothing(data, chunk)
        ):
            judge.events += 1
            return StreamEvent("delta", chunk.choices[0].delta.content, at, length)
        return None

    def _unfamiliar(self, data: bytes, at: int, length: int) -> StreamEvent:
        """The event of one data line, judged the full way, and learnt from."""
        event = self._judge.judge(data, at, length, at + 6)
        if self._judge.state != "open":
            self._forget()
        elif self._lessons and event.text and event.step == "delta" and not event.broken:
            self._lessons -= 1
            try:
                self._template = learn(b"data: %b\n\n" % data, event.content)
                if self._lessons < _LESSONS - 1:
                    # The frame around the text changes from event to event: the members may not.
                    self._decoder = decoder_of(_decode(data))
            except msgspec.DecodeError:
                pass  # a number that only the full way can read, such as 1e9 for an integer
        return event

    def _forget(self) -> None:
        """Take the full way from here on."""
        self._template = self._decoder = None
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
