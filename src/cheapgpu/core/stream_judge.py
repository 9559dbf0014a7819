"""Judges a stream event by event, the full way: strict JSON, the schema, and the table of `stream`.

This is the reference that every quicker way through `stream_verifier` is held to. Events come from
a reader of the standard (`sse`); how they were cut into reads is not visible here.
"""

from dataclasses import replace
from typing import Final

import msgspec
from msgspec import Struct

from cheapgpu.core import schema, strict_json
from cheapgpu.core.chunk_reading import Reading, read_chunk, read_wrong_chunk
from cheapgpu.core.exchange import Ending
from cheapgpu.core.findings import ExchangeOutcome, Finding, Outcome, exchange_outcome
from cheapgpu.core.limits import FINDINGS_KEPT
from cheapgpu.core.messages import FinishReason, Usage, chunk_of, fast_chunk
from cheapgpu.core.places import place
from cheapgpu.core.sse import Discarded
from cheapgpu.core.stream import MOVES, PRESENCE, State, Step
from cheapgpu.core.strict_json import Unreadable
from cheapgpu.core.usual_chunk import usual_chunk

#: The data of the event that ends a stream (profile, "SSE streaming").
DONE: Final = b"[DONE]"

#: A step in words, where it was the wrong one.
_SEEN: Final[dict[Step, str]] = {
    "delta": "a choice without a finish reason",
    "terminal": "a choice with a finish reason",
    "delta+usage": "usage beside a choice",
    "terminal+usage": "usage beside the choice with the finish reason",
    "usage": "a usage chunk",
    "empty": "a chunk with neither choice nor usage",
    "error": "an error object",
    "done": "[DONE]",
    "unreadable": "another event",
}

#: How many bytes are pointed at from where a text stops being JSON.
_SHOWN: Final = 16
#: The member of a chunk that a rule of the table is about, where it is not the whole chunk.
_BLAMED: Final = {
    "quiet-after-terminal": "/choices/0",
    "usage-alone": "/usage",
    "usage-once": "/usage",
    "terminal-once": "/choices/0/finish_reason",
    "usage-after-terminal": "/choices/0/finish_reason",
    "one-choice": "/choices",
}

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


class StreamEvent(Struct, frozen=True, gc=False):
    """One verified event of a stream; `broken` is empty if it broke no rule."""

    step: Step
    #: The text that it adds: a string, or the body of a JSON string as sent, not yet decoded.
    text: str | bytes
    #: Where the event stands in the body, and its length, in bytes.
    at: int
    length: int
    finish_reason: FinishReason | None = None
    #: Usage as reported.
    usage: Usage | None = None
    #: The rules that this event broke, without their area.
    broken: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """The text that the event adds."""
        text = self.text
        return text if isinstance(text, str) else str(_decode(b'"%b"' % text))

    @property
    def raw(self) -> bytes:
        """The text as the body of a JSON string: escaped, without the quotes."""
        text = self.text
        return text if isinstance(text, bytes) else _encode(text)[1:-1]


class StreamSummary(Struct, frozen=True, kw_only=True):
    """What a stream proved once it ended."""

    outcome: ExchangeOutcome
    finish_reason: FinishReason | None
    usage: Usage | None
    findings: list[Finding]
    #: Steps that were taken, to tell which rules had anything to look at.
    steps: frozenset[Step]
    events: int
    comments: int
    #: Whether an error object ended the stream, so that nothing else had to come.
    failed: bool
    #: Whether we stopped reading before the body ended.
    stopped: bool


class StreamJudge:
    """What is known of one stream so far: where it stands, who it says it is, what it broke.

    `model` is the supplier model id that was sent (None: the first chunk's is pinned), `limit` the
    `max_completion_tokens` that was sent (None: not judged).
    """

    __slots__ = (
        "_event",
        "_event_broken",
        "_finish_reason",
        "_limit",
        "_seen",
        "_usage",
        "created",
        "events",
        "findings",
        "id",
        "limited",
        "model",
        "state",
    )

    def __init__(self, model: str | None, limit: int | None) -> None:
        self._limit = limit
        #: Where the stream stands in the table of `stream`.
        self.state: State = "open"
        #: Events dispatched so far.
        self.events = 0
        #: The identity that every chunk must carry: the first chunk's, and the model that was sent.
        self.id: str | None = None
        self.created: int | None = None
        self.model = model
        #: Whether one of our limits kept us from reading something.
        self.limited = False
        #: By rule, what was wanted and what explains it: the first such finding, and how many came.
        self.findings: dict[tuple[str, str, str | None], Finding] = {}
        # The event at hand: data, place and length of its block, place of its data; what it broke.
        self._event = (b"", 0, 0, 0)
        self._event_broken: list[str] = []
        self._seen: set[Step] = set()
        self._finish_reason: FinishReason | None = None
        self._usage: Usage | None = None

    def judge(self, data: bytes, at: int, length: int, data_at: int) -> StreamEvent:
        """Judge the next event: its data, the place and length of its block, its data's place."""
        self.events += 1
        broken: list[str] = []
        self._event_broken = broken
        self._event = (data, at, length, data_at)
        if self.state in ("done", "failed-done"):
            reading = Reading("done" if data == DONE else "unreadable")
        elif data == DONE:
            reading = Reading("done")
        elif (chunk := usual_chunk(data) or fast_chunk(data)) is not None:
            reading = read_chunk(chunk)
        else:
            reading = self._read(data)
        self._step(reading)
        return StreamEvent(
            reading.step,
            reading.content,
            at,
            length,
            reading.finish_reason,
            reading.usage,
            tuple(broken),
        )

    def end(self, ending: Ending, discarded: Discarded | None, comments: int) -> StreamSummary:
        """End the stream and return what it proved.

        `discarded` is what was left without its blank line, `comments` how many comments came.
        """
        if ending == "stopped":
            self.find("body-complete", "", "we stopped reading", outcome=Outcome.ERROR)
        else:
            self._end_of_body(ending, discarded)
        stopped = ending == "stopped" or self.limited
        failed = self.state in ("failed", "failed-done")
        if not failed:
            self._presence(None if stopped else discarded, stopped=stopped)
        findings = sorted(self.findings.values(), key=_in_order)
        return StreamSummary(
            outcome=exchange_outcome(findings, failed=failed, stopped=stopped),
            finish_reason=self._finish_reason,
            usage=self._usage,
            findings=findings,
            steps=frozenset(self._seen),
            events=self.events,
            comments=comments,
            failed=failed,
            stopped=stopped,
        )

    def forget_utf8(self, at: int) -> None:
        """Drop what was found about the encoding from `at` on: we stopped reading there."""
        for key, finding in list(self.findings.items()):
            if key[0] == "utf8" and (finding.at or 0) >= at:
                del self.findings[key]

    def find(  # noqa: PLR0913 -- the fields of a finding
        self,
        rule: str,
        expected: str,
        observed: str,
        *,
        at: int | None = None,
        length: int = 0,
        outcome: Outcome = Outcome.FAIL,
        follows: str | None = None,
    ) -> None:
        """Keep a finding about the body as a whole: there is one of a kind."""
        self.findings[rule, expected, follows] = Finding(
            rule=f"stream/{rule}",
            outcome=outcome,
            expected=expected,
            observed=observed,
            follows=follows,
            at=at,
            length=length,
        )

    def _blame(  # noqa: PLR0913 -- the fields of a finding
        self,
        rule: str,
        expected: str,
        observed: str,
        where: str | int = "",
        *,
        outcome: Outcome = Outcome.FAIL,
        follows: str | None = None,
    ) -> None:
        """Keep a finding about the event at hand: at a member (a JSON pointer), or at an offset."""
        if outcome is Outcome.FAIL and follows is None and rule not in self._event_broken:
            self._event_broken.append(rule)
        key = (rule, expected, follows)
        if not self._known(key):
            at, length = self._place(where)
            self.findings[key] = Finding(
                rule=f"stream/{rule}",
                outcome=outcome,
                expected=expected,
                observed=observed,
                follows=follows,
                at=at,
                length=length,
                event=self.events,
            )

    def _known(self, key: tuple[str, str, str | None]) -> bool:
        """Count a finding that was made before; of each rule a bounded number is kept."""
        known = self.findings.get(key)
        if known is None:
            return sum(rule == key[0] for rule, _, _ in self.findings) >= FINDINGS_KEPT
        self.findings[key] = replace(known, count=known.count + 1)
        return True

    def _place(self, where: str | int) -> tuple[int, int]:
        """A place in the event's data as a place in the body, and its length, in bytes.

        A value spread over several data lines has no one place: then it is the event's.
        """
        data, at, length, data_at = self._event
        if where == "" or b"\n" in data or where == len(data):
            return at, length
        if isinstance(where, int):
            return data_at + where, min(_SHOWN, len(data) - where)
        start, end = place(data, where)
        return data_at + start, end - start

    def _read(self, data: bytes) -> Reading:
        """Read any object, and judge it by itself: strict JSON, schema, error schema."""
        value = strict_json.decode(data)
        if isinstance(value, Unreadable):
            self._unreadable(value)
            return Reading("unreadable")
        if not isinstance(value, dict):
            self._blame("json", "one JSON object", schema.describe(value))
            return Reading("unreadable")
        error = value.get("error") is not None
        faults = schema.faults("error" if error else "chunk", value)
        for fault in faults:
            self._blame(
                "error-schema" if error else "chunk-schema",
                fault.expected,
                f"{fault.pointer or 'the object'}: {fault.found}",
                fault.pointer,
            )
        if error:
            return Reading("error")
        return read_wrong_chunk(value) if faults else read_chunk(chunk_of(value))

    def _unreadable(self, problem: Unreadable) -> None:
        if problem.reason == "too-deep":
            self.limited = True
            self._blame("json", "", problem.what, outcome=Outcome.UNKNOWN)
            return
        self._blame(
            "json",
            "exactly [DONE], or one JSON object",
            "an event without data" if problem.reason == "empty" else problem.what,
            problem.at,
            follows="stream/utf8" if problem.reason == "invalid-utf8" else None,
        )

    def _step(self, reading: Reading) -> None:
        """Judge an event by its place in the stream and by what came before it."""
        move = MOVES[self.state][reading.step]
        if self.state in ("open", "early", "ended", "summed"):
            self._identity(reading)
            self._counts(reading)
        self.state = move.to
        self._seen.add(reading.step)
        for rule in move.broken:
            self._blame(rule, "", _SEEN[reading.step], _BLAMED.get(rule, ""))

    def _identity(self, reading: Reading) -> None:
        """Profile, "SSE streaming": the same ID, creation timestamp and declared model."""
        if reading.id is not None and reading.id != self.id:
            if self.id is None:
                self.id = reading.id
            else:
                self._blame("id-constant", schema.quoted(self.id), schema.quoted(reading.id), "/id")
        if reading.created is not None and reading.created != self.created:
            if self.created is None:
                self.created = reading.created
            else:
                expected, found = str(self.created), str(reading.created)
                self._blame("created-constant", expected, found, "/created")
        if reading.model is not None and reading.model != self.model:
            if self.model is None:
                self.model = reading.model
            else:
                self._blame(
                    "model-echoed",
                    schema.quoted(self.model),
                    schema.quoted(reading.model),
                    "/model",
                )

    def _counts(self, reading: Reading) -> None:
        """Profile, "Usage and abnormal termination": the sum; and our limit on the output."""
        if reading.finish_reason is not None and self._finish_reason is None:
            self._finish_reason = reading.finish_reason
        usage = reading.usage
        if usage is None:
            return
        if self._usage is None or (reading.step == "usage" and "usage" not in self._seen):
            self._usage = usage
        if not usage.adds_up:
            total = usage.prompt_tokens + usage.completion_tokens
            expected = f"{usage.prompt_tokens} + {usage.completion_tokens} = {total}"
            found = str(usage.total_tokens)
            self._blame("usage-adds-up", expected, found, "/usage/total_tokens")
        if self._limit is not None and usage.completion_tokens > self._limit:
            expected = f"at most {self._limit} completion tokens"
            found = str(usage.completion_tokens)
            self._blame("usage-within-limit", expected, found, "/usage/completion_tokens")

    def _end_of_body(self, ending: Ending, discarded: Discarded | None) -> None:
        if ending == "cut":
            self.find("body-complete", "an end as the framing announced", "the connection ended")
        if discarded is not None and discarded.data is not None:
            size = len(discarded.raw)
            self.find(
                "events-complete",
                "a blank line after the last event",
                f"{size} bytes that were never dispatched",
                at=discarded.at,
                length=size,
            )

    def _presence(self, discarded: Discarded | None, *, stopped: bool) -> None:
        """What must have come by the end (profile, "SSE streaming" and "Usage …")."""
        for rule, steps in PRESENCE.items():
            if not self._seen.isdisjoint(steps):
                continue
            follows = None
            if rule == "done-present" and discarded is not None and discarded.data == DONE:
                follows = "stream/events-complete"
            self.find(
                rule,
                "",
                "not before we stopped reading" if stopped else "not in the whole body",
                outcome=Outcome.UNKNOWN if stopped else Outcome.FAIL,
                follows=follows,
            )


def _in_order(finding: Finding) -> tuple[bool, int, str]:
    """By place in the body; what has none comes last."""
    return finding.at is None, finding.at or 0, finding.rule
