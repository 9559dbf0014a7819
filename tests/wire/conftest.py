"""Both loops that callers use, and nothing that goes wrong unseen on them."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar

import pytest
import uvloop

T = TypeVar("T")

#: Longer than anything here takes: a test that hangs fails.
SECONDS: Final = 15

Loops = dict[str, Callable[[], asyncio.AbstractEventLoop]]
LOOPS: Loops = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


class Run:
    """Runs a coroutine on one of the loops, for a bounded time."""

    def __init__(self, factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._factory = factory
        #: What was reported to the loop's exception handler; a test that expects it clears it.
        self.reports: list[dict[str, Any]] = []

    def __call__(self, main: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns."""

        async def bounded() -> T:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: self.reports.append(context))
            async with asyncio.timeout(SECONDS):
                return await main

        with asyncio.Runner(loop_factory=self._factory) as runner:
            return runner.run(bounded())


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """A way to run a test on each loop; it fails if anything is reported or left open."""
    one = Run(LOOPS[request.param])
    yield one
    gc.collect(1)  # what was left open warns, and a warning fails
    assert one.reports == []
