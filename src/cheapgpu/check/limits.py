"""What one exchange, and what a whole run, may take."""

from dataclasses import dataclass
from typing import Final

from cheapgpu.core.limits import (
    FIRST_BYTE_SECONDS,
    GRACE_SECONDS,
    HEAD_SECONDS,
    SILENCE_SECONDS,
)

#: Seconds until a name is resolved and a connection stands, TLS included.
CONNECT_SECONDS: Final = 10.0
#: Seconds for a whole run.
RUN_SECONDS: Final = 300.0
#: Completion tokens that all cases of a run together may ask for.
RUN_TOKENS: Final = 8192
#: Requests that must be refused, under way at once.
REQUESTS_AT_ONCE: Final = 4
#: Bytes of one answer: many times what the tokens of a run need. A recording may hold more; here
#: the worst must be judged while a person waits.
ANSWER_BYTES: Final = 8 << 20
#: Bytes of body after which a run asks no more: they are held in memory until it is reported.
RUN_BYTES: Final = 2 * ANSWER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one exchange may take (seconds, bytes); reaching one is no fault of the endpoint."""

    connect_seconds: float = CONNECT_SECONDS
    first_byte_seconds: float = FIRST_BYTE_SECONDS
    #: From the first byte of a head to its end.
    head_seconds: float = HEAD_SECONDS
    #: Without progress inside an answer; comments of an event stream are none.
    silence_seconds: float = SILENCE_SECONDS
    #: How long a stream is read on after `[DONE]`.
    grace_seconds: float = GRACE_SECONDS
    answer_bytes: int = ANSWER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may take: seconds, completion tokens asked for, bytes of body received."""

    seconds: float = RUN_SECONDS
    tokens: int = RUN_TOKENS
    received_bytes: int = RUN_BYTES
