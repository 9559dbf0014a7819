"""The examples of the rules, read from their bytes into the exchanges that a judge takes."""

from cheapgpu.core.catalogue.rule import Rule
from cheapgpu.core.examples import Example
from cheapgpu.core.exchange import Closed, Exchange, Head, How, Read, Request

_URL = "https://endpoint.example/v1/chat/completions"


def staged(rule: Rule, example: Example) -> tuple[Exchange, ...]:
    """The exchange in which `example` answered a rule's request, after the one before it, if any.

    An example without bytes stands for a request that got no answer.
    """
    # `stream/incremental` is judged on cases of this name, and no other rule minds it.
    head, reads, closed = _answer(example, None)
    case = "stream-long" if rule.id == "stream/incremental" else "example"
    exchange = Exchange(
        case=case,
        credential=rule.credential,
        model=rule.model,
        request=_request(rule.request, rule.content_type, masked=rule.credential != "none"),
        sent=0.0,
        ceiling=rule.ceiling,
        head=head,
        reads=reads,
        closed=closed,
    )
    if rule.before is None:
        return (exchange,)
    head, reads, closed = _answer(rule.before.answer, rule.before.how)
    before = Exchange(
        case="before",
        request=_request(rule.before.request, "application/json", masked=True),
        sent=0.0,
        head=head,
        reads=reads,
        closed=closed,
    )
    return before, exchange


def _request(body: bytes, content_type: str, *, masked: bool) -> Request:
    key = (("authorization", "Bearer ***"),) if masked else ()
    headers = (("content-type", content_type), *key)
    return Request(method="POST", url=_URL, headers=headers, body=body)


def _answer(example: Example, how: How | None) -> tuple[Head | None, tuple[Read, ...], Closed]:
    """Head, reads and end of an answer, whose head comes whole with its first read."""
    if not example:
        return None, (), Closed(t=1.0, how="reset")
    (t, first), *others = example
    raw_head, _, body = first.partition(b"\r\n\r\n")
    status_line, *fields = raw_head.decode().split("\r\n")
    pairs = (field.partition(": ") for field in fields)
    headers = tuple((name, value) for name, _, value in pairs)
    reads: list[Read] = []
    received = 0
    for arrived, data in ((t, body), *others):
        if data:
            reads.append(Read(t=arrived, at=received, data=data))
            received += len(data)
    head = Head(t=t, status=int(status_line.split()[1]), headers=headers)
    ended: How = "length" if received == int(head.header("content-length") or 0) else "eof"
    return head, tuple(reads), Closed(t=example[-1][0] + 0.01, how=how or ended)
