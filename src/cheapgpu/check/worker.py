"""Work that takes long, beside the event loop: signals, deadlines and arrivals go on meanwhile."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


def in_worker(work: Callable[[], T]) -> "asyncio.Future[T]":
    """Begin work in a thread of its own; the future has what it returns or raises.

    Nobody waits for the thread at the end of the program: who has no more time for the result
    cancels the future. (The event loop's own threads would be joined.)
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: list[T], error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result[0])

    def carry_out() -> None:
        result: list[T] = []
        problem: Exception | None = None
        try:
            result.append(work())
        except Exception as error:  # noqa: BLE001 -- it is raised where the future is awaited
            problem = error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, problem)

    threading.Thread(target=carry_out, name="worker", daemon=True).start()
    return future


async def result_within(future: "asyncio.Future[T]", seconds: float) -> T | None:
    """Return what work gave, or None if that takes longer; a cancelled wait gives up the work."""
    try:
        await asyncio.wait([future], timeout=max(0.0, seconds))
        return future.result() if future.done() else None
    finally:
        future.cancel()
