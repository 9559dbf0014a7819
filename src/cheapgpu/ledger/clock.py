"""Time for a ledger: microseconds since 1970, from a clock that its owner hands in.

A store reads its clock once per transaction, and that reading decides every deadline in it. A clock
that jumps forwards closes early, at zero; one that jumps backwards lets attempts stay open longer,
by as much as it jumped. Neither charges more than was admitted, and no attempt is closed at a time
before that at which it opened.
"""

import time
from collections.abc import Callable
from typing import Final

#: Microseconds since 1970-01-01 UTC.
Clock = Callable[[], int]

#: Microseconds in a second.
SECOND: Final = 1_000_000
#: How far off a deadline may be, in microseconds: one hour.
MAX_DEADLINE: Final = 3600 * SECOND
#: The last moment that is a time here: the end of the year 9999.
MAX_TIME: Final = 253_402_300_799_999_999


def steady_clock() -> Clock:
    """A clock that is set once, now, and then never jumps, whatever is done to the machine's."""
    base = time.time_ns() - time.monotonic_ns()
    return lambda: (base + time.monotonic_ns()) // 1_000
