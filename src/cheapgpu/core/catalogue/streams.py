"""`stream/`: the streamed answer.

Profile, "SSE streaming", paragraphs 1 and 2, and "Usage and abnormal termination". The order of the
events is the table in `core/stream.py`, which quotes the text.
"""

from typing import Final

from cheapgpu.core.catalogue.rule import Level, Rule
from cheapgpu.core.examples import (
    DONE,
    FALLS,
    RAIN,
    ROLE,
    STOP,
    STREAM,
    STREAM_REQUEST,
    SUMMARY,
    USAGE,
    Example,
    at_once,
    chunk,
    event,
    long_stream,
    request,
    stream,
)

_HEAD: Final = "profile § SSE streaming ¶1"
_ORDER: Final = "profile § SSE streaming ¶2"
_USAGE: Final = "profile § Usage and abnormal termination ¶1"
_ABORT: Final = "profile § Usage and abnormal termination ¶2"
_WHATWG: Final = "WHATWG HTML § 9.2.6"

_VERIFIER: Final = "stream_verifier.StreamVerifier"
_TABLE: Final = "stream.MOVES"
_PRESENCE: Final = "stream.PRESENCE"

_FAILED: Final = event(b'{"error":{"message":"the engine stopped","type":"server_error"}}')


def _rule(  # noqa: PLR0913, PLR0917 -- the fields of a rule
    name: str,
    sentence: str,
    why: str,
    citation: str,
    judge: str,
    bad: bytes | Example,
    *,
    good: bytes | Example = STREAM,
    level: Level = "MUST",
    asked: bytes = STREAM_REQUEST,
) -> Rule:
    return Rule(
        id=f"stream/{name}",
        level=level,
        sentence=sentence,
        why=why,
        citation=citation,
        judge=judge,
        request=asked,
        good=at_once(good) if isinstance(good, bytes) else good,
        bad=at_once(bad) if isinstance(bad, bytes) else bad,
    )


STREAM_RULES: Final = (
    _rule(
        "status",
        "A streamed answer has status 200.",
        "Other statuses of success mean something else to a client.",
        _HEAD,
        "answers.judge_head",
        STREAM.replace(b"200 OK", b"201 Created"),
    ),
    _rule(
        "content-type",
        "Its media type is text/event-stream; parameters do not matter.",
        "Clients choose their parser by it, and proxies their buffering.",
        f"{_HEAD} · WHATWG HTML § 9.2.5",
        "answers.judge_head",
        STREAM.replace(b"text/event-stream", b"application/json"),
    ),
    _rule(
        "content-encoding",
        "It has no content coding that was not asked for.",
        "A coding holds text back until a block of it is full.",
        "RFC 9110 § 12.5.3 · our reading",
        "answers.judge_head",
        STREAM.replace(b"content-length", b"content-encoding: gzip\r\ncontent-length"),
    ),
    _rule(
        "body-complete",
        "The body ends as its framing says, or we closed it after [DONE].",
        "A connection that breaks is not the end of an answer.",
        f"{_ABORT} · RFC 9112 § 8",
        "stream_verifier.StreamVerifier.finish",
        STREAM.replace(b"content-length: ", b"content-length: 1"),
    ),
    _rule(
        "utf8",
        "Every byte of the body decodes as UTF-8.",
        "A reader must replace what does not decode: the buyer gets another text.",
        f"{_HEAD} · WHATWG HTML § 9.2.5",
        _VERIFIER,
        stream(ROLE, RAIN, b": \xff\n\n", FALLS, STOP, SUMMARY, DONE),
    ),
    _rule(
        "events-complete",
        "The stream ends on a blank line: nothing is left that was never dispatched.",
        "An event without its blank line does not exist for a reader of the standard, [DONE] too.",
        f"{_HEAD} · {_WHATWG}",
        "sse.EventReader.finish",
        stream(ROLE, RAIN, FALLS, STOP, SUMMARY, DONE[:-1]),
    ),
    _rule(
        "json",
        "The data of each event is exactly [DONE] or one strict JSON object.",
        "Two readers must not see two chunks, or two usages, in the same bytes.",
        f"{_ORDER} · RFC 8259",
        "strict_json.decode",
        stream(
            ROLE,
            RAIN.replace(b'"content":"Rain"', b'"content":"Rain","content":"Snow"'),
            FALLS,
            STOP,
            SUMMARY,
            DONE,
        ),
    ),
    _rule(
        "chunk-schema",
        "Every object without an error matches the chunk schema: usage is in each, null at first.",
        "A client that reads usage on each chunk must find it; null says: not yet.",
        f"{_ORDER} · JSON Schema, chunk",
        "schema.faults",
        stream(ROLE, RAIN, chunk({"content": " falls."}, usage=...), STOP, SUMMARY, DONE),
    ),
    _rule(
        "id-constant",
        "Every chunk has the same id.",
        "The id says which answer a chunk belongs to.",
        _ORDER,
        _VERIFIER,
        stream(ROLE, RAIN, chunk({"content": " falls."}, id="chatcmpl-2"), STOP, SUMMARY, DONE),
    ),
    _rule(
        "created-constant",
        "Every chunk has the same creation timestamp.",
        "It is when the answer was created, not when the chunk was.",
        _ORDER,
        _VERIFIER,
        stream(ROLE, RAIN, chunk({"content": " falls."}, created=1767225601), STOP, SUMMARY, DONE),
    ),
    _rule(
        "model-echoed",
        "Every chunk's model is the supplier model id that was sent.",
        "Another name means another model, or at least that nobody can tell.",
        _ORDER,
        _VERIFIER,
        stream(ROLE, RAIN, chunk({"content": " falls."}, model="other"), STOP, SUMMARY, DONE),
    ),
    _rule(
        "one-choice",
        "A chunk without usage has exactly one choice.",
        "A chunk with nothing in it is neither text nor an end nor usage.",
        _ORDER,
        _TABLE,
        stream(chunk(choices=[]), ROLE, RAIN, FALLS, STOP, SUMMARY, DONE),
    ),
    _rule(
        "terminal-present",
        "One choice has a finish reason.",
        "Without it nobody knows whether the text is whole.",
        _ORDER,
        _PRESENCE,
        stream(ROLE, RAIN, FALLS, SUMMARY, DONE),
    ),
    _rule(
        "terminal-once",
        "Only one choice has a finish reason.",
        "Two ends leave it open which one counts.",
        _ORDER,
        _TABLE,
        stream(ROLE, RAIN, FALLS, STOP, STOP, SUMMARY, DONE),
    ),
    _rule(
        "quiet-after-terminal",
        "No further choice comes after the one with a finish reason.",
        "Clients stop reading at the end; what follows is lost, and may have been counted.",
        _ORDER,
        _TABLE,
        stream(ROLE, RAIN, STOP, FALLS, SUMMARY, DONE),
    ),
    _rule(
        "usage-present",
        "Some chunk states usage.",
        "What was not counted cannot be billed, and is never estimated.",
        f"{_ORDER} · {_USAGE}",
        _PRESENCE,
        stream(ROLE, RAIN, FALLS, STOP, DONE),
    ),
    _rule(
        "usage-alone",
        "Usage comes in a chunk of its own, with choices [].",
        "Clients that add up usage wherever they meet it count it twice.",
        _ORDER,
        _TABLE,
        stream(ROLE, RAIN, FALLS, chunk(finish="stop", usage=USAGE), DONE),
    ),
    _rule(
        "usage-once",
        "One usage chunk only.",
        "Of two summaries one is wrong, and a client that adds them up counts twice.",
        _ORDER,
        _TABLE,
        stream(ROLE, RAIN, FALLS, STOP, SUMMARY, SUMMARY, DONE),
    ),
    _rule(
        "usage-after-terminal",
        "No terminal choice comes after the usage chunk.",
        "Usage that is stated before the end cannot have counted all of it.",
        _ORDER,
        _TABLE,
        stream(ROLE, RAIN, FALLS, SUMMARY, STOP, DONE),
    ),
    _rule(
        "usage-adds-up",
        "total_tokens is prompt_tokens plus completion_tokens.",
        "Where the sum is wrong, at least one of the three numbers is.",
        _USAGE,
        _VERIFIER,
        stream(ROLE, RAIN, FALLS, STOP, SUMMARY.replace(b":15}", b":99}"), DONE),
    ),
    _rule(
        "usage-within-limit",
        "completion_tokens is at most the max_completion_tokens that was sent.",
        "The limit bounds what was admitted; a count beyond it cannot be charged.",
        "profile § Request ¶3 · our reading",
        _VERIFIER,
        stream(
            ROLE,
            RAIN,
            FALLS,
            STOP,
            SUMMARY.replace(b":3,", b":65,").replace(b":15}", b":77}"),
            DONE,
        ),
    ),
    _rule(
        "done-present",
        "The last dispatched event is [DONE].",
        "Without it a finished stream and a broken one look alike.",
        _ORDER,
        _PRESENCE,
        stream(ROLE, RAIN, FALLS, STOP, SUMMARY),
    ),
    _rule(
        "done-last",
        "Nothing is dispatched after the first [DONE].",
        "Clients have gone by then.",
        _ORDER,
        _TABLE,
        stream(ROLE, RAIN, FALLS, STOP, SUMMARY, DONE, DONE),
    ),
    _rule(
        "error-schema",
        "An error object within the stream matches the error schema.",
        "Clients read error.message and error.type; others get nothing.",
        f"{_ABORT} · JSON Schema, error",
        "schema.faults",
        stream(ROLE, RAIN, event(b'{"error":"the engine stopped"}')),
        good=stream(ROLE, RAIN, _FAILED),
    ),
    _rule(
        "error-is-final",
        "After an error object no chunk and no usage comes; a [DONE] is tolerated.",
        "A failure that goes on to look like success is billed as one.",
        _ABORT,
        _TABLE,
        stream(ROLE, RAIN, _FAILED, STOP, SUMMARY, DONE),
        good=stream(ROLE, RAIN, _FAILED, DONE),
    ),
    _rule(
        "incremental",
        "Text comes while it is made: on a long answer, not all of it at the end.",
        "A whole answer wrapped in a stream makes its reader wait for all of it.",
        _HEAD,
        "streaming.judge_stream",
        long_stream(held_back=True),
        good=long_stream(held_back=False),
        asked=request(max_completion_tokens=256),
    ),
    _rule(
        "closes-after-done",
        "The body ends within a second of [DONE].",
        "A connection that stays open keeps a client waiting for nothing.",
        _ORDER,
        "streaming.judge_stream",
        ((0.1, STREAM), (3.0, b"")),
        level="SHOULD",
    ),
    _rule(
        "heartbeat-while-silent",
        "No silence is longer than 15 seconds without a comment.",
        "Proxies and clients give up on a connection on which nothing comes.",
        _ORDER,
        "streaming.judge_stream",
        ((0.1, STREAM[:-20]), (20.0, STREAM[-20:])),
        level="SHOULD",
    ),
)
