"""What a run asks, of whom, and what it may take."""

import secrets
import ssl
from dataclasses import dataclass, field
from typing import Final

from cheapgpu import __version__
from cheapgpu.check.cases import CASES, Case
from cheapgpu.check.limits import Budget, Limits
from cheapgpu.check.long_stream import LONG_SECONDS
from cheapgpu.check.target import Target
from cheapgpu.core.errors import CheapGPUError
from cheapgpu.core.exchange import Headers, Request
from cheapgpu.core.recording import MASKED

TOOL: Final = f"cheapgpu {__version__}"


class PlanError(CheapGPUError):
    """A run cannot be made as planned; the message names the field and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run asks, of whom, and what it may take. Raises PlanError if it makes no sense."""

    target: Target
    #: The supplier model id.
    model: str
    #: The bearer key; None sends the valid cases without one.
    key: str | None = None
    #: TLS settings for an https target; None: the system's authorities are trusted.
    context: ssl.SSLContext | None = None
    cases: tuple[Case, ...] = CASES
    #: The largest max_completion_tokens that the endpoint admits; None: not known.
    ceiling: int | None = None
    limits: Limits = field(default_factory=Limits)
    budget: Budget = field(default_factory=Budget)
    #: How long a long stream must go on to be long enough (seconds).
    long_seconds: float = LONG_SECONDS

    def __post_init__(self) -> None:
        if not 1 <= len(self.model) <= 256:
            raise PlanError("model: must have 1 to 256 characters; give the supplier model id")
        key = self.key
        if key is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
            raise PlanError(
                "key: is empty, or has a space, a line break or a character outside ASCII; "
                "give the bearer key and nothing else"
            )
        if self.ceiling is not None and self.ceiling < 1:
            raise PlanError("ceiling: must be at least 1 token; give the endpoint's output ceiling")
        for name, seconds in (
            ("timeout", self.limits.first_byte_seconds),
            ("budget", self.budget.seconds),
        ):
            if not 0 < seconds < float("inf"):
                raise PlanError(f"{name}: is {seconds:g}; give a number of seconds above 0")
        if self.tokens > self.budget.tokens:
            raise PlanError(
                f"tokens: is {self.budget.tokens}, but the cases can cost {self.tokens} "
                "completion tokens; allow at least as many"
            )

    @property
    def tokens(self) -> int:
        """The most completion tokens that the cases ask for, before any further long question."""
        return sum(self.asked(case) for case in self.cases)

    def asked(self, case: Case) -> int:
        """The completion tokens that a case asks for here: at most the ceiling."""
        if self.ceiling is None or not case.adjustable:
            return case.tokens
        return min(case.tokens, self.ceiling)

    def request(self, case: Case) -> tuple[Request, str | None]:
        """The request of a case, its credential masked, and the credential to send with it.

        A wrong key and an unknown model id are made up anew each time.
        """
        model = self.model if case.model == "known" else f"no-such-model-{secrets.token_hex(8)}"
        body = case.body(model, self.asked(case))
        key = {"valid": self.key, "wrong": f"wrong-{secrets.token_hex(24)}", "none": None}
        bearer = key[case.credential]
        headers: Headers = (
            ("host", self.target.authority),
            ("user-agent", TOOL.replace(" ", "/")),
            ("accept", "text/event-stream" if case.stream else "application/json"),
            ("accept-encoding", "identity"),
            *((("authorization", f"Bearer {MASKED}"),) if bearer is not None else ()),
            ("content-type", case.content_type),
            ("content-length", str(len(body))),
        )
        request = Request(method="POST", url=self.target.url, headers=headers, body=body)
        return request, None if bearer is None else f"Bearer {bearer}"
