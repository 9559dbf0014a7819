"""One coarse clock for many: each second everything that has a deadline is looked at.

A timer for each of thousands of connections would cost more than the look.
"""

import asyncio
from typing import Protocol

from cheapgpu.wire.faults import report_fault


class Swept(Protocol):
    """Something that looks at the clock from time to time."""

    def sweep(self, now: float) -> None:
        """Look at the clock: `now` is the loop's time, in seconds."""


class Sweeper:
    """Calls `sweep` of all its members every `seconds`, from `start` to `stop`."""

    def __init__(self, seconds: float = 1.0) -> None:
        self._seconds = seconds
        self._members: set[Swept] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._members)

    def start(self) -> None:
        """Begin to look at the clock; the loop must be running. Twice is as good as once."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds, self._tick, loop)

    def stop(self) -> None:
        """End it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def add(self, member: Swept) -> None:
        """Look at the clock for `member`, too."""
        self._members.add(member)

    def discard(self, member: Swept) -> None:
        """Do so no longer."""
        self._members.discard(member)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for member in tuple(self._members):
            if member not in self._members:  # an earlier one has let it go
                continue
            try:
                member.sweep(now)
            except Exception as error:  # noqa: BLE001 -- one fault must not stop all the others
                report_fault(f"{type(member).__name__}.sweep", error)
        if self._timer is not None:  # no member has stopped us
            self._timer = loop.call_later(self._seconds, self._tick, loop)
