"""Why an answer of an engine was not passed on as a success, and what its buyer is told.

A failure before the head of our answer has left is a status with the error schema; afterwards it is
an error object in the stream, and the end of the connection. Neither quotes the engine's own words,
which may hold a prompt, a path or a key.
"""

from typing import Final, Literal

import msgspec
from msgspec import Struct

Reason = Literal[
    "engine-refused",
    "engine-context",
    "engine-busy",
    "engine-error",
    "engine-unreachable",
    "engine-not-ready",
    "engine-closed",
    "engine-silent",
    "cut",
    "deadline",
    "stopping",
    "media-type",
    "malformed",
    "not-a-chunk",
    "finish-missing",
    "finish-unknown",
    "usage-missing",
    "usage-wrong",
    "limit-exceeded",
    "model-changed",
    "after-terminal",
    "unclean-end",
    "too-large",
    "unverified",
]

#: Reason → the status where the head has not left, and one sentence for the buyer.
FAILURES: Final[dict[Reason, tuple[int, str]]] = {
    "engine-refused": (400, "the model server refused the request"),
    "engine-context": (
        400,
        "the messages and max_completion_tokens together exceed the context of the model",
    ),
    "engine-busy": (503, "the model server takes no more requests at the moment"),
    "engine-error": (502, "the model server reported an error"),
    "engine-unreachable": (503, "the model server cannot be reached"),
    "engine-not-ready": (503, "the model server is not ready"),
    "engine-closed": (502, "the model server closed the connection without an answer"),
    "engine-silent": (504, "the model server was silent for too long"),
    "cut": (502, "the model server's answer broke off"),
    "deadline": (504, "the answer was not complete by its deadline"),
    "stopping": (503, "the endpoint is being stopped"),
    "media-type": (502, "the model server answered with another media type"),
    "malformed": (502, "the model server's answer is malformed"),
    "not-a-chunk": (502, "the model server's answer is none of a chat completion"),
    "finish-missing": (502, "the model server did not say why the answer ended"),
    "finish-unknown": (502, "the model server gave a finish reason that the profile does not know"),
    "usage-missing": (502, "the model server did not report usage"),
    "usage-wrong": (502, "the model server reported usage that cannot be believed"),
    "limit-exceeded": (502, "the model server exceeded max_completion_tokens"),
    "model-changed": (502, "the model server answered as another model"),
    "after-terminal": (502, "the model server's answer went on after its end"),
    "unclean-end": (502, "the model server's answer did not end cleanly"),
    "too-large": (502, "the model server's answer is larger than is allowed"),
    "unverified": (502, "the answer did not pass verification"),
}

#: The `type` of an error, by status; others are `server_error`.
_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    408: "invalid_request_error",
    411: "invalid_request_error",
    413: "invalid_request_error",
    414: "invalid_request_error",
    417: "invalid_request_error",
    429: "rate_limit_error",
    431: "invalid_request_error",
}

_encode: Final = msgspec.json.Encoder().encode


class Fault(Exception):  # noqa: N818 -- a finding about the engine, not an error of ours
    """An engine's answer cannot be passed on; `what` says why, without any generated text."""

    def __init__(self, reason: Reason, what: str) -> None:
        super().__init__(what)
        self.failure = Failure(reason, what)


class Failure(Struct, frozen=True):
    """How an answer failed: the reason, and for the operator's log what was seen."""

    reason: Reason
    #: For the log, not for the buyer; without any generated text.
    what: str
    #: The member of the request that is to blame, as the SDKs name it.
    param: str | None = None

    @property
    def status(self) -> int:
        """The status of a refusal, where no head has left yet."""
        return FAILURES[self.reason][0]

    @property
    def body(self) -> bytes:
        """The error as an object of the error schema."""
        return error_body(self.status, FAILURES[self.reason][1], code=self.reason, param=self.param)


def error_body(
    status: int, message: str, *, code: str | None = None, param: str | None = None
) -> bytes:
    """An object of the error schema (profile, "Errors") for a refusal with this status."""
    kind = _TYPES.get(status, "server_error")
    return _encode({"error": {"message": message, "type": kind, "code": code, "param": param}})
