"""An engine's stream in, the profile's stream out: edited honestly, and verified before it leaves.

Pure: bytes in, bytes out, no clock and no socket. The finish reason and the usage wait until the
engine's answer has ended well; then they leave together with `[DONE]`. Whatever goes wrong before
that is a `Failure`, and nothing that looks like an end is written any more.

As in `core.stream_verifier`, an event that is the bytes of one already read around another text
takes a short way: its text is moved between the frames of our own chunks, undecoded. What comes out
is verified like everything else.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from cheapgpu.core import strict_json
from cheapgpu.core.limits import ANSWER_BYTES, EVENT_BYTES, STREAM_EVENTS
from cheapgpu.core.messages import FinishReason, fast_value
from cheapgpu.core.sse import EventReader
from cheapgpu.core.stream_judge import DONE
from cheapgpu.core.stream_verifier import StreamVerifier
from cheapgpu.core.strict_json import Unreadable
from cheapgpu.core.template import Template, learn_frame
from cheapgpu.endpoint.canonical import Identity, chunk_frames, string_body
from cheapgpu.endpoint.chunk_edits import Piece, Report, read_engine_chunk
from cheapgpu.endpoint.dialects import Dialect
from cheapgpu.endpoint.edits import Edit, EditCount
from cheapgpu.endpoint.failures import Failure, Fault, Reason

#: Frames that may be learned before the short way is given up, and what a good run wins back.
_LESSONS: Final = 8
_GOOD_RUN: Final = 8
#: What a verifier's finding about our own bytes says about the engine.
_REASONS: Final[dict[str, Reason]] = {
    "stream/usage-within-limit": "limit-exceeded",
    "stream/usage-adds-up": "usage-wrong",
    "stream/utf8": "malformed",
}


class StreamBridge:
    """One answer: `feed` it the engine's body as it comes, then `finish` unless it is `over`.

    `limit` is the max_completion_tokens that was asked for; `is_pinned` tells whether a model name
    is the one that the engine is known to give the model. `collect` keeps the text instead of
    returning it. Once `over`, `failure` tells whether the answer is whole.
    """

    __slots__ = (
        "_between",
        "_counted",
        "_edits",
        "_finish",
        "_frames",
        "_identity",
        "_index",
        "_is_pinned",
        "_lessons",
        "_model",
        "_out",
        "_reader",
        "_received",
        "_report",
        "_report_beside",
        "_run_length",
        "_synonyms",
        "_template",
        "_template_edits",
        "_template_ends",
        "_template_joint",
        "_verified",
        "_verifier",
        "events",
        "failure",
        "over",
        "texts",
    )

    def __init__(
        self,
        dialect: Dialect,
        identity: Identity,
        limit: int,
        is_pinned: Callable[[str], bool],
        *,
        collect: bool = False,
    ) -> None:
        self.over = False
        #: Events of the engine that were read so far.
        self.events = 0
        self.failure: Failure | None = None
        self.texts: list[str] | None = [] if collect else None
        self._identity = identity
        self._synonyms = dialect.synonyms
        self._is_pinned = is_pinned
        self._frames = chunk_frames(identity)
        self._reader = EventReader()
        self._verifier = StreamVerifier(model=identity.model, limit=limit)
        self._edits = EditCount()
        # Written and not yet verified; verified and not yet passed on.
        self._out: list[bytes] = []
        self._verified: list[bytes] = []
        self._between = False
        self._received = 0
        self._index = 0
        self._model: str | None = None
        self._finish: FinishReason | None = None
        self._report: Report | None = None
        self._report_beside = False
        self._lessons = _LESSONS
        self._run_length = 0
        self._template: Template | None = None
        self._template_ends = (b"", b"")
        self._template_joint = b""
        self._template_edits: tuple[Edit, ...] = ()
        # How many events there were by the last one whose edits are counted; those after it took
        # the short way.
        self._counted = 0

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the answer ended, once the engine has said so."""
        return self._finish

    @property
    def report(self) -> Report | None:
        """Usage as the engine reported it, once it has."""
        return self._report

    @property
    def edits(self) -> EditCount:
        """What was changed so far."""
        self._count_repeated()
        return self._edits

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes of the engine's body; return what is to be passed on now."""
        if self.over:
            return b""
        template = self._template
        if template is not None and self._between and self.texts is None:
            passed = self._repeat(template, chunk)
            if passed:
                return passed
        try:
            self._read(chunk)
        except Fault as fault:
            self._fail(fault.failure)
        return self._passed_on()

    def _repeat(self, template: Template, chunk: bytes) -> bytes:
        """Pass on the usual read: whole events, each the known frame around another text.

        Returns nothing, and has taken nothing, where a read is any other: that is for `_read`.
        """
        size = len(chunk)
        received = self._received + size
        if size > EVENT_BYTES or received > ANSWER_BYTES:
            return b""
        ends = self._template_ends
        if size < template.two:  # one event at most
            body = chunk[template.text_at : size - template.text_to]
            if (
                body.join(template.ends) != chunk
                or self.events >= STREAM_EVENTS
                or not self._verifier.pass_text(ends, body)
            ):
                return b""
            self.events += 1
            passed = body.join(ends)
        else:
            bodies = template.all_texts(chunk)
            if (
                not bodies
                or self.events + len(bodies) > STREAM_EVENTS
                or not self._verifier.pass_texts(ends, bodies)
            ):
                return b""
            self.events += len(bodies)
            passed = self._template_joint.join(bodies).join(ends)
        self._received = received
        return passed

    def finish(self, *, whole: bool) -> bytes:
        """End the engine's body; return what is to be passed on.

        `whole`: it ended as its framing announced; false where it was cut, or has no framing.
        """
        if self.over:
            return b""
        try:
            self._end_of_body(whole=whole)
        except Fault as fault:
            self._fail(fault.failure)
        return self._passed_on()

    def _end_of_body(self, *, whole: bool) -> None:
        """An end without [DONE] is one only if nothing else is missing, and nothing was unread."""
        discarded = self._reader.finish()
        if not whole:
            raise Fault("cut", f"the body ended without [DONE] after {self.events} events")
        if discarded is not None and discarded.data not in (None, DONE):
            raise Fault("cut", f"the body ended within an event, after {self.events} whole ones")
        if any(name != b"[DONE]" for name in self._reader.unknown):
            raise Fault("unclean-end", "the body has lines that are of no event, and no [DONE]")
        self._complete()
        self._edits.add(("done",))

    def _read(self, chunk: bytes) -> None:
        reader = self._reader
        at = self._received
        if at + len(chunk) > ANSWER_BYTES:
            raise Fault("too-large", f"the body has more than {ANSWER_BYTES} bytes")
        self._received = at + len(chunk)
        if (self._between or reader.can_skip(chunk)) and chunk.find(b"\r") < 0:
            position = self._plain_events(chunk)
            if position == len(chunk) or self.over:
                self._between = True
                return
            reader.skip_to(at + position, self.events)
            chunk = chunk[position:]
        reader.receive(chunk)
        while not self.over and (event := reader.next_event()) is not None:
            self._event(event.data)
        if reader.overrun is not None and not self.over:
            raise Fault("too-large", f"the stream is over a limit: {reader.overrun}")
        if any(name.strip(b" \"'{") == b"error" for name in reader.unknown):
            raise Fault("engine-error", "a line that is of no event begins with error")
        self._between = reader.idle

    def _plain_events(self, chunk: bytes) -> int:
        """Read whole events of one data line each from the start of `chunk`, which has no CR.

        Returns how many bytes were read; what follows is left to the reader.
        """
        position = 0
        find, startswith = chunk.find, chunk.startswith
        while self.events < STREAM_EVENTS and not self.over:
            template = self._template
            if template is not None and startswith(template.prefix, position):
                length = self._run(template, chunk, position)
                if length:
                    position += length
                    continue
                self._forget()
            end = find(b"\n", position)
            if end < 0 or not startswith(b"\n", end + 1) or not startswith(b"data: ", position):
                break
            if end + 2 - position > EVENT_BYTES:
                break
            self._event(chunk[position + 6 : end], chunk[position : end + 2])
            position = end + 2
        return position

    def _run(self, template: Template, chunk: bytes, position: int) -> int:
        """Move the texts of the events from `position` that fit the template into our frames.

        Returns how many bytes they are.
        """
        bodies = template.follow(chunk, position, STREAM_EVENTS - self.events)
        if not bodies:
            return 0
        ends = self._template_ends
        written = self._template_joint.join(bodies).join(ends)
        self._verify()
        if self.texts is None and self._verifier.pass_texts(ends, bodies):
            self._verified.append(written)
        else:
            self._out.append(written)
        self.events += len(bodies)
        return sum(map(len, bodies)) + template.frame * len(bodies)

    def _event(self, data: bytes, block: bytes | None = None) -> None:
        """Read one event the full way; `block` is its bytes where they are one plain data line."""
        self._count_repeated()
        self.events += 1
        self._counted = self.events
        if data == DONE:
            self._complete()
            self._edits.add(("closed-after-done",))
            return
        if not data:
            self._edits.add(("event-left-out",))
            return
        value = fast_value(data)
        if value is None:
            value = strict_json.decode(data)
            block = None
        if isinstance(value, Unreadable):
            raise Fault("malformed", f"event {self.events}: {value.what}")
        if not isinstance(value, dict):
            raise Fault("malformed", f"event {self.events}: JSON, but no object")
        if value.get("error") is not None:
            raise Fault("engine-error", f"event {self.events} is an error object")
        edits: set[Edit] = {"identity"}
        piece = read_engine_chunk(value, data, self._synonyms, edits)
        self._take(piece, edits)
        self._edits.add(edits)
        if block is not None and piece.text and piece.finish_reason is None and not piece.report:
            self._learn(block, value, piece, tuple(edits))

    def _take(self, piece: Piece, edits: set[Edit]) -> None:
        """Keep and pass on what one chunk says."""
        if piece.model is not None and piece.model != self._model:
            if self._model is not None or not self._is_pinned(piece.model):
                raise Fault("model-changed", f"event {self.events} names another model")
            self._model = piece.model
        if piece.model != self._identity.model:
            edits.add("model")
        if piece.report is not None:
            self._take_report(piece.report, beside=piece.beside)
        if piece.text is None:
            return
        if piece.index < self._index:
            raise Fault("not-a-chunk", f"event {self.events}: the index goes back")
        self._index = piece.index
        if self._finish is not None:
            if piece.text or piece.finish_reason is not None:
                raise Fault("after-terminal", f"event {self.events} follows the terminal choice")
            edits.add("chunk-left-out")
            return
        self._finish = piece.finish_reason
        self._write(piece, edits)

    def _take_report(self, report: Report, *, beside: bool) -> None:
        """Keep the last of growing reports; two that differ leave nothing to choose between."""
        last = self._report
        if last is not None:
            grew = (
                self._report_beside
                and report.usage.prompt_tokens >= last.usage.prompt_tokens
                and report.usage.completion_tokens >= last.usage.completion_tokens
                and report.usage.total_tokens >= last.usage.total_tokens
            )
            if report.usage != last.usage and not grew:
                raise Fault(
                    "usage-wrong", f"event {self.events} reports usage once more, otherwise"
                )
        self._report = report
        self._report_beside = beside

    def _write(self, piece: Piece, edits: set[Edit]) -> None:
        """Write the text of a chunk, or its role alone; what carries neither is left out."""
        frames = self._frames
        if piece.text and piece.finish_reason is not None:
            edits.add("terminal-split")
        elif not piece.text and piece.finish_reason is not None:
            return
        if piece.has_content:
            before = frames.role_text if piece.has_role else frames.text
            self._out += (before, string_body(piece.text or ""), frames.after_text)
        elif piece.has_role:
            self._out.append(frames.role)
        else:
            edits.add("chunk-left-out")

    def _complete(self) -> None:
        """End the answer, if the engine has given all that makes an end."""
        if self._finish is None:
            raise Fault("finish-missing", f"no finish reason in {self.events} events")
        if self._report is None:
            raise Fault("usage-missing", f"no usage in {self.events} events")
        self._verify()
        ending = self._frames.ending(self._finish, self._report.raw)
        self._verifier.feed(ending)
        summary = self._verifier.finish("whole")
        if summary.outcome != "complete":
            broken = sorted({finding.rule for finding in summary.findings})
            raise Fault(_REASONS.get(broken[0], "unverified"), f"verification: {', '.join(broken)}")
        self._verified.append(ending)
        self.over = True

    def _passed_on(self) -> bytes:
        """What the buyer gets of all that was written since the last time."""
        try:
            self._verify()
        except Fault as fault:
            self._fail(fault.failure)
        verified = self._verified
        passed = verified[0] if len(verified) == 1 else b"".join(verified)
        verified.clear()
        return b"" if self.texts is not None else passed

    def _verify(self) -> None:
        """Verify what was written and has not been verified; all of it may leave, or none."""
        out = self._out
        if not out:
            return
        together = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        events = self._verifier.feed(together)
        if self._verifier.broken:
            raise Fault("malformed", "verification of the text failed")
        self._verified.append(together)
        if self.texts is not None:
            self.texts += [event.content for event in events]

    def _fail(self, failure: Failure) -> None:
        if self.failure is None:
            self.failure = failure
        self.over = True

    def _learn(
        self, block: bytes, value: dict[str, Any], piece: Piece, edits: tuple[Edit, ...]
    ) -> None:
        """Learn the frame of a chunk of text, for the next one may have the same."""
        if self._run_length >= _GOOD_RUN:
            self._lessons = _LESSONS
        self._run_length = 0
        if not self._lessons:
            return
        self._lessons -= 1
        self._forget()
        try:
            self._template = learn_frame(block, value)
        except msgspec.DecodeError:
            return
        self._template_edits = edits
        frames = self._frames
        before = frames.role_text if piece.has_role else frames.text
        self._template_ends = (before, frames.after_text)
        self._template_joint = frames.after_text + before

    def _forget(self) -> None:
        self._count_repeated()
        self._template = None

    def _count_repeated(self) -> None:
        """Count the edits of the events that took the short way since the last other one."""
        repeated = self.events - self._counted
        if repeated:
            self._edits.add(self._template_edits, repeated)
            self._run_length += repeated
            self._counted = self.events
