"""The right endpoint: a request to an answer, stage by stage; a fault can change each stage."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from cheapgpu.core.errors import CheapGPUError
from cheapgpu.simulate.answer import (
    DONE,
    Answer,
    Event,
    Wire,
    error_answer,
    json_answer,
    rendered,
    stream_answer,
)
from cheapgpu.simulate.asked import Asked, Known, Message, credential_of, read
from cheapgpu.simulate.gallery.fault import Events, Fault, Habit
from cheapgpu.simulate.model import Speech, speak

INFERENCE_PATH: Final = "/v1/chat/completions"
MODELS_PATH: Final = "/v1/models"

#: What `created` counts from: fixed, so that the same requests get the same bytes.
_CREATED: Final = 1_767_225_600
#: Seconds of silence after which a waiting client is sent a comment.
HEARTBEAT_SECONDS: Final = 10.0
HEARTBEAT: Final = b": waiting\n\n"

T = TypeVar("T")


class SimulateError(CheapGPUError):
    """An endpoint cannot be simulated as asked; the message names the field and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What a simulated endpoint knows and does. Raises SimulateError if it makes no sense."""

    key: str
    model: str = "simulated"
    #: Seconds for each token.
    pace: float = 0.005
    #: The largest max_completion_tokens that is admitted, in tokens.
    ceiling: int = 4096
    #: The path of inference; None: any.
    path: str | None = INFERENCE_PATH
    #: In the order in which they change an answer; none: the endpoint is right.
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        if not (self.key and self.key.isascii() and self.key.isprintable() and " " not in self.key):
            raise SimulateError(
                "key: is empty, or has a space or a character outside ASCII; "
                "give the bearer key and nothing else"
            )
        if not 1 <= len(self.model) <= 256:
            raise SimulateError("model: must have 1 to 256 characters; give the supplier model id")
        if not 0 <= self.pace <= 60:
            raise SimulateError(f"pace: is {self.pace * 1000:g} ms; give 0 to 60000 ms per token")
        if not 1 <= self.ceiling <= 65_536:
            raise SimulateError(f"ceiling: is {self.ceiling}; give 1 to 65536 tokens")

    @property
    def habits(self) -> frozenset[Habit]:
        """What its faults do to exchanges other than their own."""
        return frozenset[Habit]().union(*(fault.habits for fault in self.faults))


def understood(
    endpoint: Endpoint, message: Message, *, number: int, before: Asked | None = None
) -> Asked | Answer:
    """Read a request for an answer, or answer at once what is none."""
    if message.path == MODELS_PATH and message.method in ("GET", "HEAD"):
        return _models(endpoint, message)
    if endpoint.path not in (message.path, None):
        return error_answer(404, f"the path is {endpoint.path}", "invalid_request_error")
    if message.method != "POST":
        answer = error_answer(405, "the method is POST", "invalid_request_error")
        return replace(answer, headers=(*answer.headers, ("allow", "POST")))
    known = Known(model=endpoint.model, key=endpoint.key, ceiling=endpoint.ceiling)
    return read(message, known, number=number, before=before)


def respond(endpoint: Endpoint, asked: Asked) -> tuple[Wire, bool]:
    """Answer a request; also tell whether the model was put to work for it."""
    faults = endpoint.faults
    answer = _refused(endpoint, asked)
    inferred = answer is None
    if answer is None:
        answer = _answered(endpoint, asked)
        answer = _changed(answer, asked, (fault.answer for fault in faults))
    wire = rendered(answer)
    return _changed(wire, asked, (fault.wire for fault in faults)), inferred


def _refused(endpoint: Endpoint, asked: Asked) -> Answer | None:
    """The refusal that a request gets, if it gets one."""
    faults = endpoint.faults
    rule = asked.rule
    if rule is None or any(rule in fault.tolerates for fault in faults):
        refusals = (fault.refuses(asked) for fault in faults if fault.refuses is not None)
        return next((refusal for refusal in refusals if refusal is not None), None)
    if rule.startswith("auth/"):
        answer = error_answer(401, asked.why, "authentication_error")
    else:
        status = 404 if rule == "refuse/unknown-model" else 400
        answer = error_answer(status, asked.why, "invalid_request_error", asked.param)
    return _changed(answer, asked, (fault.refusal for fault in faults))


def _answered(endpoint: Endpoint, asked: Asked) -> Answer:
    faults = endpoint.faults
    speech = speak(asked.messages, min(asked.limit, endpoint.ceiling))
    speech = _changed(speech, asked, (fault.speech for fault in faults))
    if asked.stream:
        events: Events = tuple(_with_heartbeats(_events(endpoint, asked, speech)))
        events = _changed(events, asked, (fault.events for fault in faults))
        return stream_answer(events)
    completion = _completion(asked, speech)
    completion = _changed(completion, asked, (fault.completion for fault in faults))
    return json_answer(completion, wait=endpoint.pace * len(speech.pieces))


def _changed(thing: T, asked: Asked, stage: Iterable[Callable[[T, Asked], T] | None]) -> T:
    """What the faults make of one stage, one after the other."""
    for change in stage:
        thing = change(thing, asked) if change is not None else thing
    return thing


def _identity(asked: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{asked.number:08}",
        "object": kind,
        "created": _CREATED + asked.number,
        "model": asked.model,
    }


def _events(endpoint: Endpoint, asked: Asked, speech: Speech) -> Iterator[Event]:
    """A stream in the profile's order (profile, "SSE streaming")."""
    identity = _identity(asked, "chat.completion.chunk")

    def chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**identity, "choices": [choice], "usage": None}

    yield Event(block=chunk({"role": "assistant", "content": ""}))
    for piece in speech.pieces:
        yield Event(block=chunk({"content": piece}), wait=endpoint.pace)
    yield Event(block=chunk({}, speech.finish_reason))
    yield Event(block={**identity, "choices": [], "usage": speech.usage})
    yield Event(block=DONE)


def _completion(asked: Asked, speech: Speech) -> dict[str, Any]:
    """A plain answer (profile, "JSON completion")."""
    message = {"role": "assistant", "content": speech.text}
    choice = {"index": 0, "message": message, "finish_reason": speech.finish_reason}
    return {
        **_identity(asked, "chat.completion"),
        "choices": [choice],
        "usage": speech.usage,
    }


def _with_heartbeats(events: Iterable[Event]) -> Iterator[Event]:
    """The same events, with a comment wherever a client would wait for long."""
    for event in events:
        left = event.wait
        while left > HEARTBEAT_SECONDS:
            yield Event(block=HEARTBEAT, wait=HEARTBEAT_SECONDS)
            left -= HEARTBEAT_SECONDS
        yield replace(event, wait=left)


def _models(endpoint: Endpoint, message: Message) -> Answer:
    """The model list, for those who have the key."""
    valid = credential_of(message.authorization, endpoint.key) == "valid"
    if not valid and "models-open" not in endpoint.habits:
        return error_answer(401, "a valid bearer key is needed", "authentication_error")
    about = {"id": endpoint.model, "object": "model", "created": _CREATED, "owned_by": "simulate"}
    answer = json_answer({"object": "list", "data": [about]})
    # A head alone announces the length that a body would have (RFC 9110 section 9.3.2).
    length = sum(len(piece.data) for piece in answer.body)
    return replace(answer, body=(), announced=length) if message.method == "HEAD" else answer
