"""Asks a simulated endpoint as the checker does, or on paper, without sockets or waiting."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cheapgpu.check.events import Sent, Step
from cheapgpu.check.framing import Framing
from cheapgpu.check.limits import Limits
from cheapgpu.check.timed_exchange import Question, exchange
from cheapgpu.core import examples
from cheapgpu.core.exchange import (
    Closed,
    Credential,
    Exchange,
    Head,
    Headers,
    ModelKnown,
    Read,
    Request,
)
from cheapgpu.core.rules import BY_ID
from cheapgpu.simulate.asked import Asked, Message
from cheapgpu.simulate.endpoint import Endpoint, respond, understood
from cheapgpu.simulate.server import serving
from cheapgpu.wire.target import parse_target

KEY = "simulate-key-0123456789"
#: An endpoint whose model the examples of the rules ask for.
RIGHT = Endpoint(key=KEY, model=examples.MODEL, pace=0.0)
QUICK = Limits(
    connect_seconds=5.0,
    first_byte_seconds=0.4,
    head_seconds=0.4,
    silence_seconds=0.4,
    grace_seconds=0.2,
)
#: For answers that take their time.
PATIENT = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A question to put, and what its sender knows."""

    case: str
    body: bytes
    credential: Credential = "valid"
    model: ModelKnown = "known"
    content_type: str = "application/json"
    ceiling: int | None = None
    leave_after: int | None = None

    def headers(self, key: str) -> Headers:
        """The header fields, with this key."""
        right = key if self.credential == "valid" else "wrong"
        bearer = (("authorization", f"Bearer {right}"),) if self.credential != "none" else ()
        return (
            ("host", "endpoint.example"),
            *bearer,
            ("content-type", self.content_type),
            ("content-length", str(len(self.body))),
        )

    def request(self, url: str) -> Request:
        """The request with its key masked."""
        return Request(method="POST", url=url, headers=self.headers("***"), body=self.body)


def _short(body: bytes) -> bytes:
    """A request whose answer has too few events for its times to be judged."""
    return body.replace(b'tokens":64', b'tokens":32')


def questions_of(rule_id: str) -> list[Put]:
    """The example request of a rule, after the one before it."""
    rule = BY_ID[rule_id]
    puts = []
    if rule.before is not None:
        left = rule.before.how == "left"
        puts.append(
            Put(
                case=f"before {rule_id}",
                body=_short(rule.before.request),
                leave_after=1 if left else None,
            )
        )
    puts.append(
        Put(
            case=rule_id,
            body=_short(rule.request),
            credential=rule.credential,
            model=rule.model,
            content_type=rule.content_type,
            ceiling=rule.ceiling,
        )
    )
    return puts


STREAM = Put(case="stream", body=_short(examples.STREAM_REQUEST))
WHOLE = Put(case="whole", body=_short(examples.WHOLE_REQUEST))


def asked(
    endpoint: Endpoint, questions: Iterable[Put], limits: Limits = QUICK
) -> tuple[Exchange, ...]:
    """Serve an endpoint on loopback and put the questions one after another."""

    async def ask_all() -> tuple[Exchange, ...]:
        async with serving(endpoint) as url:
            return tuple([await ask(url, endpoint.key, put, limits) for put in questions])

    return asyncio.run(ask_all())


async def ask(url: str, key: str, put: Put, limits: Limits = QUICK) -> Exchange:
    """Put one question, on a connection of its own."""
    steps: list[Step] = []
    question = Question(
        request=put.request(url),
        headers=put.headers(key),
        seconds=60.0,
        leave_after=put.leave_after,
    )
    await exchange(parse_target(url), question, None, limits, steps.append)
    sent = next((step.t for step in steps if isinstance(step, Sent)), None)
    return _exchange(put, url, sent, [step for step in steps if not isinstance(step, Sent)])


def on_paper(endpoint: Endpoint, put: Put, *, number: int = 1) -> Exchange:
    """What the exchange would be if every wait took the time that it says."""
    fields = dict(put.headers(endpoint.key))
    message = Message(
        method="POST",
        path="/v1/chat/completions",
        content_type=fields["content-type"],
        authorization=fields.get("authorization"),
        body=put.body,
    )
    request = understood(endpoint, message, number=number)
    assert isinstance(request, Asked)
    wire, _ = respond(endpoint, request)
    framing = Framing()
    framing.request("/", put.headers("***"), put.body)
    steps: list[Head | Read | Closed] = []
    t, at = 0.0, 0
    for piece in wire.pieces:
        t += piece.wait
        part = framing.receive(piece.data)
        if part.head is not None:
            steps.append(Head(t=t, status=part.head[0], headers=part.head[1]))
        if part.body:
            steps.append(Read(t=t, at=at, data=part.body))
            at += len(part.body)
        if part.end is not None:
            steps.append(Closed(t=t, how=part.end, detail=part.detail))
            break
    else:
        steps.append(Closed(t=t + 1.0, how="eof" if wire.ending == "cut" else "timeout"))
    return _exchange(put, "http://endpoint.example/", 0.0, steps)


def _exchange(
    put: Put, url: str, sent: float | None, steps: Sequence[Head | Read | Closed]
) -> Exchange:
    return Exchange(
        case=put.case,
        credential=put.credential,
        model=put.model,
        request=put.request(url),
        sent=sent,
        ceiling=put.ceiling,
        head=next((step for step in steps if isinstance(step, Head)), None),
        reads=tuple(step for step in steps if isinstance(step, Read)),
        # The endpoint is in the same process: it was never quicker than its client.
        closed=replace(next(s for s in steps if isinstance(s, Closed)), lag=None),
    )
