"""How long we did not look ourselves, so that no endpoint is blamed for a busy machine."""

import asyncio
from types import TracebackType
from typing import Final, Self

from cheapgpu.check.connection import Clock

#: Seconds between two looks at the clock. Text that a model makes faster than events can be timed
#: comes within little more than this (core.streaming), so it must be short.
_TICK_SECONDS: Final = 0.005


class LagMeter:
    """Looks at the clock in short turns of the event loop, for as long as a block lasts.

    Where a turn comes late, nothing was read either: the loop takes what has arrived and what is
    due in the same turn. Whatever kept it is counted, be it other processes, or work of our own.
    """

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._last = now()
        self._longest = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def longest(self) -> float:
        """The longest time between two turns so far, in seconds."""
        return round(max(self._longest, self._now() - self._last), 6)

    def __enter__(self) -> Self:
        self._tick()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        now = self._now()
        self._longest = max(self._longest, now - self._last)
        self._last = now
        self._timer = asyncio.get_running_loop().call_later(_TICK_SECONDS, self._tick)
