"""HTTP messages of the rules' examples, read back into exchanges."""

from cheapgpu.core.examples import Example
from cheapgpu.core.exchange import Closed, Exchange, Head, How, Read, Request
from cheapgpu.core.rules import Rule


def request_of(rule: Rule) -> Request:
    """The request that a rule's examples answer."""
    key = (("authorization", "Bearer ***"),) if rule.credential != "none" else ()
    return Request(
        method="POST",
        url="https://endpoint.example/v1/chat/completions",
        headers=(("content-type", rule.content_type), *key),
        body=rule.request,
    )


def exchange_of(rule: Rule, example: Example) -> Exchange:
    """The exchange in which `example` answered the request of `rule`."""
    message = b"".join(data for _, data in example)
    raw_head, _, _ = message.partition(b"\r\n\r\n")
    status_line, *fields = raw_head.decode().split("\r\n")
    headers = tuple((name, value) for name, _, value in (f.partition(": ") for f in fields))
    head = Head(t=example[0][0], status=int(status_line.split()[1]), headers=headers)
    reads: list[Read] = []
    at, skip = 0, len(raw_head) + 4
    for t, data in example:
        body = data[skip:]
        skip = max(0, skip - len(data))
        if body:
            reads.append(Read(t=t, at=at, data=body))
            at += len(body)
    how: How = "length" if at == int(head.header("content-length") or 0) else "eof"
    return Exchange(
        case="stream-long" if rule.id == "stream/incremental" else rule.id,
        credential=rule.credential,
        model=rule.model,
        request=request_of(rule),
        sent=0.0,
        head=head,
        reads=tuple(reads),
        closed=Closed(t=example[-1][0] + 0.01, how=how),
    )
