"""What a run asks, of whom, and what it may take."""

import base64
import secrets
import ssl
from dataclasses import dataclass, field
from typing import Final

from cheapgpu import __version__
from cheapgpu.check.case import NONCE, Beside, Case
from cheapgpu.check.cases import CASES
from cheapgpu.check.limits import REQUESTS_AT_ONCE, Budget, Limits
from cheapgpu.check.long_stream import LONG_SECONDS
from cheapgpu.check.masking import secrets_of
from cheapgpu.core.across import CountTokens
from cheapgpu.core.errors import CheapGPUError
from cheapgpu.core.exchange import Headers, Request
from cheapgpu.core.recording import MASKED, masked
from cheapgpu.wire.target import Target

TOOL: Final = f"cheapgpu {__version__}"

#: Fields that a request has anyway, or that would change how it is framed.
_OWN_FIELDS: Final = frozenset(
    {
        "host",
        "user-agent",
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "te",
        "transfer-encoding",
        "upgrade",
    }
)
#: More requests under way at once would be a load test.
_MOST_AT_ONCE: Final = 64
_NAME_MARKS: Final = frozenset("!#$%&'*+-.^_`|~")


class PlanError(CheapGPUError):
    """A run cannot be made as planned; the message names the field and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request, twice: as it is told and recorded, and its header fields as they are sent."""

    #: Its credentials are masked.
    request: Request
    headers: Headers = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run asks, of whom, and what it may take. Raises PlanError if it makes no sense."""

    target: Target
    #: The supplier model id.
    model: str
    #: The bearer key; None sends the valid cases without one.
    key: str | None = field(default=None, repr=False)
    #: Header fields to send beside the usual ones; their values are masked like a key.
    headers: Headers = field(default=(), repr=False)
    #: TLS settings for an https target; None: the system's authorities are trusted.
    context: ssl.SSLContext | None = None
    cases: tuple[Case, ...] = CASES
    #: The largest max_completion_tokens that the endpoint admits; None: not known.
    ceiling: int | None = None
    #: How many cases that must be refused may be under way at once; with 1 nothing ever is.
    concurrency: int = REQUESTS_AT_ONCE
    limits: Limits = field(default_factory=Limits)
    budget: Budget = field(default_factory=Budget)
    #: How long a long stream must go on to be long enough (seconds).
    long_seconds: float = LONG_SECONDS
    #: The model's own tokenizer, to count completion tokens again; None: it is not at hand.
    count_tokens: CountTokens | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.model) <= 256:
            raise PlanError("model: must have 1 to 256 characters; give the supplier model id")
        key = self.key
        if key is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
            raise PlanError(
                "key: is empty, or has a space, a line break or a character outside ASCII; "
                "give the bearer key and nothing else"
            )
        _check_headers(self.headers)
        if self.ceiling is not None and self.ceiling < 1:
            raise PlanError("ceiling: must be at least 1 token; give the endpoint's output ceiling")
        if not 1 <= self.concurrency <= _MOST_AT_ONCE:
            raise PlanError(
                f"concurrency: is {self.concurrency}; give a number from 1 to {_MOST_AT_ONCE}"
            )
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

    @property
    def secrets(self) -> list[str]:
        """What must be seen by nobody: the key, also as a case changes it, and header values."""
        other = _other_case(self.key) if self.key is not None else None
        return secrets_of(self.key, other, *(value for _, value in self.headers))

    def asked(self, case: Case) -> int:
        """The completion tokens that a case asks for here: at most the ceiling."""
        if self.ceiling is None or not case.adjustable:
            return case.tokens
        return min(case.tokens, self.ceiling)

    def at_once(self, beside: Beside) -> int:
        """How many cases of a kind may be under way at the same time."""
        match beside:
            case "nothing":
                return 1
            case "refusals":
                return self.concurrency
            case "streams":
                return _MOST_AT_ONCE if self.concurrency > 1 else 1

    def request(self, case: Case) -> Prepared:
        """The request of a case. A wrong key, an unknown model id and a word are made up anew."""
        model = self.model if case.model == "known" else f"no-such-model-{secrets.token_hex(8)}"
        body = case.body(model, self.asked(case))
        body = body.replace(NONCE.encode(), b"cg%b" % secrets.token_hex(4).encode())
        content_type = (("content-type", case.content_type),) if case.content_type else ()
        bearer = self._credential(case)
        shown, sent = (
            (
                ("host", self.target.authority),
                ("user-agent", TOOL.replace(" ", "/")),
                ("accept", "text/event-stream" if case.stream else "application/json"),
                ("accept-encoding", "identity"),
                *authorization,
                *content_type,
                ("content-length", str(len(body))),
                *others,
            )
            for authorization, others in (
                (
                    tuple((name, masked(name, value)) for name, value in bearer),
                    tuple((name, MASKED) for name, _ in self.headers),
                ),
                (bearer, self.headers),
            )
        )
        request = Request(method="POST", url=self.target.url, headers=shown, body=body)
        return Prepared(request=request, headers=sent)

    def _credential(self, case: Case) -> Headers:
        """The authorization field of a case as it is sent, if there is one."""
        wrong = f"wrong-{secrets.token_hex(24)}"
        right = self.key if case.credential == "valid" else wrong
        if case.credential == "none" or right is None:
            return ()
        known = self.key or wrong
        other = _other_case(known)
        basic = base64.b64encode(f"wrong:{wrong}".encode()).decode()
        values = {
            "bearer": f"Bearer {right}",
            "capitals": f"Bearer {right}",
            "empty": "Bearer",
            "spaces": "Bearer  \t ",
            "other-case": f"Bearer {other if other != known else wrong}",
            "basic": f"Basic {basic}",
            "token": f"Token {known}",
        }
        name = "AUTHORIZATION" if case.key == "capitals" else "authorization"
        return ((name, values[case.key]),)


def _other_case(key: str) -> str:
    return key.swapcase()


def _check_headers(headers: Headers) -> None:
    """Refuse fields that cannot be sent; a message repeats no value, which may be a secret."""
    for name, value in headers:
        if not name or not all(c.isascii() and (c.isalnum() or c in _NAME_MARKS) for c in name):
            raise PlanError("header: the name is empty or no token; give it like x-api-version:2")
        if name.lower() in _OWN_FIELDS:
            remedy = "give the key with --key-env" if name.lower() == "authorization" else "drop it"
            raise PlanError(f"header: {name} is set by the check itself; {remedy}")
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            raise PlanError(
                f"header: the value of {name} has a line break or a character outside ASCII; "
                "give printable characters"
            )
