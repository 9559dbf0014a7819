"""The engines behind an endpoint, and the models that they serve: what is known of them now."""

import asyncio
from typing import Final

from cheapgpu.endpoint.dialects import Dialect
from cheapgpu.wire.client import Origin

#: Seconds that a buyer is asked to wait before it comes again.
RETRY_SECONDS: Final = 2
_ALWAYS: Final = (
    "content-type: application/json\r\n"
    "accept: application/json, text/event-stream\r\n"
    "accept-encoding: identity\r\n"
)


class Upstream:
    """One model server: where it is, how it speaks, whether it is ready, how busy it is."""

    __slots__ = (
        "at_once",
        "dialect",
        "doubted",
        "in_flight",
        "lines",
        "name",
        "origin",
        "plain_only",
        "ready",
        "target",
        "why_not",
    )

    def __init__(
        self, name: str, *, at_once: int, plain_only: bool = False, dialect: Dialect | None = None
    ) -> None:
        #: What logs and metrics call it; no URL, which may hold what is nobody's affair.
        self.name = name
        self.at_once = at_once
        self.plain_only = plain_only
        #: None until it has been recognised.
        self.dialect = dialect
        self.origin = Origin(host="127.0.0.1", port=0)
        #: What the request line names.
        self.target = ""
        #: The field lines of its requests: Host, Authorization and what is always the same.
        self.lines = b""
        #: Whether it takes requests, and if not, why not.
        self.ready = False
        #: Set where a request could not reach it: whoever watches it looks again at once.
        self.doubted = asyncio.Event()
        self.why_not = "it has not answered yet"
        self.in_flight = 0

    def locate(self, origin: Origin, authority: str, target: str, key: str) -> None:
        """Note where it is, and the bearer key that it asks for ("": none)."""
        self.origin = origin
        self.target = target
        bearer = f"authorization: Bearer {key}\r\n" if key else ""
        self.lines = f"host: {authority}\r\n{bearer}{_ALWAYS}".encode("latin-1")

    def is_ready(self) -> None:
        """Take note that it takes requests."""
        self.ready, self.why_not = True, ""

    def is_not_ready(self, why: str) -> None:
        """Take note that it takes none, and why."""
        self.ready, self.why_not = False, why


class ServedModel:
    """A declared model, and the name under which its engine is known to answer for it."""

    __slots__ = ("ceiling", "engine_id", "id", "reported", "upstream")

    def __init__(self, id: str, engine_id: str, ceiling: int, upstream: Upstream) -> None:  # noqa: A002 -- the profile's word
        self.id = id
        self.engine_id = engine_id
        self.ceiling = ceiling
        self.upstream = upstream
        #: The name that the engine gives it, where that is neither of ours; learned once.
        self.reported: str | None = None

    def is_pinned(self, name: str) -> bool:
        """Whether the engine answers as the model that it is known to serve.

        The first name that is neither the declared nor the engine's id is pinned, since engines
        answer with paths and first aliases; any later one is another model.
        """
        if name in (self.engine_id, self.id):
            return True
        if self.reported is None:
            self.reported = name
        return name == self.reported
