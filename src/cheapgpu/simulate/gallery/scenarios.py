"""Faults that were reported of real endpoints, by their number in the corpus of reports.

`tests/data/corpus/quirks/scenarios.json` has the report, its source, and what must come of it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from cheapgpu.simulate.answer import (
    DONE,
    Answer,
    Event,
    Piece,
    encode,
    error_answer,
    stream_answer,
    with_body,
)
from cheapgpu.simulate.asked import Asked
from cheapgpu.simulate.gallery.admission import refused
from cheapgpu.simulate.gallery.coding import gzipped_at_the_end
from cheapgpu.simulate.gallery.conduct import repeats_the_last
from cheapgpu.simulate.gallery.fault import Events, Fault, in_streams
from cheapgpu.simulate.gallery.streams import FAILED, failed_in_the_middle, held_back, middle
from cheapgpu.simulate.gallery.timing import late, never
from cheapgpu.simulate.model import Speech, speak

#: Comments that keep a dead stream looking alive: one every so many seconds, for ten minutes.
_KEEPALIVE: Final = Event(block=b": keepalive\n\n", wait=0.05)
_KEEPALIVES: Final = 12_000
#: Nesting beyond every sensible limit, in levels.
_LEVELS: Final = 5000
_NESTED: Final = b',"x":' + b"[" * _LEVELS + b"]" * _LEVELS + b"}"
_DEFAULT_MODEL: Final = "m-default"
#: What one mode counts beside the prompt and the other does not, in tokens.
_TEMPLATE: Final = 60
#: Tokens beyond the limit that was sent.
_MORE: Final = 16
#: Until the first event, in seconds.
_LATE: Final = 6.0


def _scenario(name: str, sentence: str, *breaks: str, **stages: Any) -> Fault:  # noqa: ANN401 -- the stages of a fault
    return Fault(name=f"scenario/{name}", sentence=sentence, breaks=breaks, **stages)


def _kept_alive(events: Events, _: Asked) -> Events:
    return (*events[: middle(events)], *(_KEEPALIVE,) * _KEEPALIVES)


def _nested_chunk(events: Events, _: Asked) -> Events:
    place = middle(events)
    event = events[place]
    block = b"data: " + encode(event.block)[:-1] + _NESTED + b"\n\n"
    return (*events[:place], replace(event, block=block), *events[place + 1 :])


def _nested_answer(answer: Answer, asked: Asked) -> Answer:
    return answer if asked.stream else with_body(answer, lambda body: body[:-1] + _NESTED)


def _default_model(events: Events, asked: Asked) -> Events:
    if asked.rule != "refuse/unknown-model":
        return events
    return tuple(event.but(model=_DEFAULT_MODEL) for event in events)


def _incomplete(events: Events, _: Asked) -> Events:
    """Usage under an event name that clients do not look at, and neither finish nor [DONE]."""
    kept = [event for event in events if not event.is_terminal and not event.is_done]
    summary = kept[-1]
    return (*kept[:-1], replace(summary, block=b"event: incomplete\n" + summary.data))


def _template_in_plain(speech: Speech, asked: Asked) -> Speech:
    more = 0 if asked.stream else _TEMPLATE
    return replace(speech, prompt_tokens=speech.prompt_tokens + more)


def _unlimited(_: Speech, asked: Asked) -> Speech:
    speech = speak(asked.messages, asked.limit + _MORE)
    return replace(speech, finish_reason="stop")


def _proxy_notice(_: Asked) -> Answer:
    return Answer(
        status=403,
        headers=(("content-type", "text/plain"),),
        body=(Piece(data=b"the model server sent nothing in time"),),
        framing="length",
    )


def _with_status(status: int, rule: str) -> Callable[[Answer, Asked], Answer]:
    """A change of the status of refusals by one rule."""

    def changed(answer: Answer, asked: Asked) -> Answer:
        return replace(answer, status=status) if asked.rule == rule else answer

    return changed


def _surrogate(asked: Asked) -> Answer | None:
    if asked.rule != "refuse/lone-surrogate":
        return None
    said = "UnicodeEncodeError: surrogates not allowed"
    if not asked.stream:
        return error_answer(500, said, "server_error")
    return stream_answer([Event(block={"error": {"message": said, "type": "server_error"}})])


def _crlf(answer: Answer) -> Answer:
    body = (replace(piece, data=piece.data.replace(b"\n", b"\r\n")) for piece in answer.body)
    return replace(answer, body=tuple(body))


def _failed_at_once(events: Events, _: Asked) -> Events:
    return (events[0], FAILED)


SCENARIOS: Final = (
    _scenario(
        "Q033",
        "Sends half of the text, and then nothing but comments, 20 in a second.",
        opens=(
            "stream/body-complete",
            "stream/terminal-present",
            "stream/usage-present",
            "stream/done-present",
        ),
        events=_kept_alive,
    ),
    _scenario(
        "Q053",
        f"Adds a member to an answer that is nested {_LEVELS} levels deep.",
        opens=("stream/json", "whole/json"),
        events=_nested_chunk,
        answer=_nested_answer,
    ),
    _scenario(
        "Q078",
        "Serves an unknown model by its default one, and names that.",
        "refuse/unknown-model",
        "stream/model-echoed",
        tolerates=frozenset({"refuse/unknown-model"}),
        events=_default_model,
    ),
    _scenario(
        "Q103",
        "Ends a stream by an event named incomplete that states usage, without finish or [DONE].",
        "stream/terminal-present",
        "stream/done-present",
        events=_incomplete,
    ),
    _scenario(
        "Q130",
        "Counts a template in plain answers and leaves it out in streams.",
        "honesty/modes-agree",
        speech=_template_in_plain,
    ),
    _scenario(
        "Q156",
        "Answers 403 in plain text to a valid key, since the model took too long.",
        "error/content-type",
        opens=("stream/status", "whole/status", "accepted/*"),
        refuses=_proxy_notice,
    ),
    _scenario(
        "Q169",
        "Ignores members that it does not know.",
        "refuse/unknown-field",
        tolerates=frozenset({"refuse/unknown-field"}),
    ),
    _scenario(
        "Q171",
        "Ignores max_completion_tokens.",
        "stream/usage-within-limit",
        "whole/usage-within-limit",
        "honesty/limit-respected",
        speech=_unlimited,
    ),
    _scenario(
        "Q172",
        "Refuses stream_options with 422.",
        "accepted/integers",
        "accepted/unicode",
        "accepted/roles",
        "stream/status",
        refuses=lambda asked: refused(422) if asked.stream else None,
    ),
    _scenario(
        "Q174",
        "Takes a message of an empty role.",
        "refuse/role-unknown",
        tolerates=frozenset({"refuse/role-unknown"}),
    ),
    _scenario(
        "Q175",
        "Takes an empty list of tools.",
        "refuse/tools",
        tolerates=frozenset({"refuse/tools"}),
    ),
    _scenario(
        "Q177",
        "Answers a wrong key with 500.",
        "auth/wrong-refused",
        refusal=_with_status(500, "auth/wrong-refused"),
    ),
    _scenario(
        "Q179",
        "Is too busy to look for a key: a request without one gets 503.",
        opens=("auth/missing-refused",),
        refusal=_with_status(503, "auth/missing-refused"),
    ),
    _scenario(
        "Q180",
        "Shows its model list to everyone, and refuses inference without a key.",
        habits=frozenset({"models-open"}),
    ),
    _scenario(
        "Q181",
        "Sends its head at once, and all of the stream when the answer is finished.",
        "stream/incremental",
        answer=in_streams(held_back),
    ),
    _scenario(
        "Q183",
        "Stands behind a proxy that buffers events until the end.",
        "stream/incremental",
        answer=in_streams(held_back),
    ),
    _scenario(
        "Q184",
        "Compresses a stream, and the compressor lets nothing out before the end.",
        "stream/content-encoding",
        answer=in_streams(gzipped_at_the_end),
    ),
    _scenario(
        "Q187",
        "Gives to a second stream the text of the first.",
        "service/answers-not-mixed",
        speech=repeats_the_last,
    ),
    _scenario(
        "Q188",
        "Goes on generating for a client that has left, and lets the next one wait for that.",
        "service/free-after-disconnect",
        habits=frozenset({"works-on"}),
    ),
    _scenario("Q190", "Takes a request and never answers.", opens=("*",), wire=never),
    _scenario(
        "Q191",
        f"Sends its head at once, and the first event {_LATE:g} s later.",
        events=lambda events, _: late(events, _LATE),
    ),
    _scenario(
        "Q194",
        "Reports an error in the middle of a stream, and no usage.",
        events=lambda events, _: failed_in_the_middle(events),
    ),
    _scenario(
        "Q197",
        "Ends the lines of a stream with CR LF, as the standard allows.",
        answer=in_streams(_crlf),
    ),
    _scenario(
        "Q200",
        "Fails on a lone surrogate: 500, or in a stream an error after 200.",
        "refuse/lone-surrogate",
        "error/status",
        tolerates=frozenset({"refuse/lone-surrogate"}),
        refuses=_surrogate,
    ),
    _scenario(
        "Q202",
        "Answers a wrong key with 422.",
        "auth/wrong-refused",
        refusal=_with_status(422, "auth/wrong-refused"),
    ),
    _scenario(
        "Q208",
        "Reports an error in the middle of a stream, and then sends [DONE].",
        events=lambda events, _: failed_in_the_middle(events, Event(block=DONE)),
    ),
    _scenario(
        "Q209",
        "Reports an error after the head and no text at all.",
        events=_failed_at_once,
    ),
)
