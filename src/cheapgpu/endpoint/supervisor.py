"""Keeps the embedded engine running: its end, or its silence, is followed by a new start.

Requests in progress fail by themselves, as their connections end; until the engine is ready again
others are told to come back. Each start that fails, or lasts only a moment, doubles the wait.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from cheapgpu.endpoint.dialects import DIALECTS
from cheapgpu.endpoint.embedded import Engine, EngineError, EngineOptions, start_engine
from cheapgpu.endpoint.engine import Upstream
from cheapgpu.endpoint.fetch import FetchError, fetch
from cheapgpu.wire.client import Origin, Pool

#: Seconds before a new start at most; a run this long wins the first, shorter wait back.
_LONGEST_WAIT: Final = 30.0
_GOOD_RUN: Final = 60.0
#: Looks in a row without an answer after which an engine is ended.
_MOST_SILENT: Final = 3


class Pace(Struct, frozen=True):
    """How patient a supervisor is, in seconds."""

    #: Before a new start, at first.
    wait: float = 0.5
    #: Between two looks at a running engine, and for its answer to each.
    look: float = 5.0


class Supervisor:
    """One embedded engine for as long as the endpoint runs."""

    def __init__(
        self,
        options: EngineOptions,
        upstream: Upstream,
        pool: Pool,
        tell: Callable[[str], None],
        *,
        pace: Pace | None = None,
    ) -> None:
        self._options = options
        self._upstream = upstream
        self._pool = pool
        self._tell = tell
        self._pace = pace or Pace()
        #: None while there is none.
        self.engine: Engine | None = None

    async def start(self) -> None:
        """Start the engine for the first time; raises EngineError if it does not start."""
        self.engine = await start_engine(self._options)
        self._attach(self.engine)

    async def watch(self) -> None:
        """Watch the engine, and start it anew whenever it has ended, until cancelled."""
        wait = self._pace.wait
        while True:
            if self.engine is not None:
                began = time.monotonic()
                how = await self._until_it_ends(self.engine)
                self.engine = None
                if time.monotonic() - began >= _GOOD_RUN:
                    wait = self._pace.wait
                self._upstream.is_not_ready(f"{how}; it is started anew")
                self._tell(f"{self._upstream.name}: {how}; a new start in {wait:g} s")
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
            try:
                self.engine = await start_engine(self._options)
            except EngineError as error:
                self._tell(f"{self._upstream.name}: {error}; the next try in {wait:g} s")
            else:
                self._attach(self.engine)
                self._tell(f"{self._upstream.name}: running again")

    async def stop(self) -> None:
        """End the engine, if there is one; `watch` must have been cancelled."""
        if self.engine is not None:
            await self.engine.stop()

    async def _until_it_ends(self, engine: Engine) -> str:
        """Wait for the end of an engine, or for a silence after which it is ended."""
        ended = asyncio.create_task(engine.exited())
        silent = 0
        try:
            while not (await asyncio.wait({ended}, timeout=self._pace.look))[0]:
                silent = 0 if await self._answers() else silent + 1
                if silent == _MOST_SILENT:
                    await engine.stop(grace_seconds=0)
                    await ended
                    return "the engine had stopped answering, and was ended"
            return ended.result()
        finally:
            ended.cancel()

    async def _answers(self) -> bool:
        upstream = self._upstream
        try:
            where, lines = upstream.origin, upstream.lines
            await fetch(self._pool, where, "/health", lines, seconds=self._pace.look)
        except FetchError:
            return False
        return True

    def _attach(self, engine: Engine) -> None:
        """Send the upstream's requests to a started engine."""
        upstream = self._upstream
        upstream.dialect = DIALECTS["llama.cpp"]
        origin = Origin(host="127.0.0.1", port=engine.port)
        authority = f"127.0.0.1:{engine.port}"
        upstream.locate(origin, authority, "/v1/chat/completions", engine.api_key)
        upstream.is_ready()
