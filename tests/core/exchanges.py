"""Exchanges to judge, built from the examples of the core."""

from typing import Any

from cheapgpu.core.examples import (
    DONE,
    FALLS,
    RAIN,
    ROLE,
    STOP,
    STREAM_REQUEST,
    SUMMARY,
    WHOLE_REQUEST,
    completion,
)
from cheapgpu.core.exchange import Closed, Exchange, Head, Headers, How, Read, Request

STREAM_BODY = b"".join((ROLE, RAIN, FALLS, STOP, SUMMARY, DONE))
WHOLE_BODY = completion()
JSON: Headers = (("content-type", "application/json"),)
EVENTS: Headers = (("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))


def exchange(
    body: bytes = STREAM_BODY,
    *,
    status: int = 200,
    headers: Headers = EVENTS,
    sent: bytes = STREAM_REQUEST,
    how: How = "chunked-end",
    cut: int = 0,
    at: float = 0.1,
    end: float = 0.2,
    detail: str = "",
    **knowledge: Any,
) -> Exchange:
    """One answer, in one read or in reads of `cut` bytes a hundredth of a second apart."""
    size = cut or max(len(body), 1)
    pieces = [(n, body[n : n + size]) for n in range(0, len(body), size)]
    reads = [
        Read(t=round(at + 0.01 * n, 6), at=place, data=data)
        for n, (place, data) in enumerate(pieces)
    ]
    return Exchange(
        **{"case": "a-case", **knowledge},
        request=Request(
            method="POST",
            url="https://endpoint.example/v1/chat/completions",
            headers=(*JSON, ("authorization", "Bearer ***")),
            body=sent,
        ),
        sent=0.0,
        head=Head(t=0.05, status=status, headers=headers),
        reads=tuple(reads),
        closed=Closed(t=max(end, reads[-1].t if reads else 0), how=how, detail=detail),
    )


def whole(body: bytes = WHOLE_BODY, **changes: Any) -> Exchange:
    """The answer to a plain request."""
    return exchange(body, **{"headers": JSON, "sent": WHOLE_REQUEST, "how": "length", **changes})


def unanswered(how: How = "reset", detail: str = "", case: str = "a-case") -> Exchange:
    """A request to which no head came."""
    asked = exchange()
    return Exchange(
        case=case,
        request=asked.request,
        sent=0.0,
        closed=Closed(t=1.0, how=how, detail=detail),
    )


def bare(body: bytes) -> Exchange:
    """A body alone, without head, request and times."""
    return Exchange(
        case="file",
        reads=(Read(t=0.0, at=0, data=body),),
        closed=Closed(t=0.0, how="unstated"),
        timed=False,
    )
