"""An endpoint from its settings: engines, keys, listeners; opened together, and closed in order."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from cheapgpu.endpoint.access_log import AccessLog, open_log
from cheapgpu.endpoint.counters import Counters
from cheapgpu.endpoint.keys import Keyring, keys_of_environment, keys_of_file
from cheapgpu.endpoint.metrics import MetricsService
from cheapgpu.endpoint.relay import Times
from cheapgpu.endpoint.service import Endpoint
from cheapgpu.endpoint.settings import Settings
from cheapgpu.endpoint.supervisor import Pace
from cheapgpu.endpoint.upstreams import Opener, Tell
from cheapgpu.wire.client import Pool
from cheapgpu.wire.listener import Listener, server_tls
from cheapgpu.wire.server import ServerLimits
from cheapgpu.wire.sweeper import Sweeper

#: Seconds between two looks at the clock, at most; a heartbeat wants a quarter of its silence.
_SWEEP_SECONDS: Final = 1.0


class Running:
    """An endpoint that is open: where it is, and how it is stopped."""

    def __init__(
        self, settings: Settings, endpoint: Endpoint, listener: Listener, opener: Opener
    ) -> None:
        self._settings = settings
        self._endpoint = endpoint
        self._listener = listener
        self._supervisors = opener.supervisors
        self.upstreams = opener.upstreams
        scheme = "https" if settings.tls_cert else "http"
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        #: What buyers are given.
        self.inference_url = f"{scheme}://{host}:{listener.port}{settings.path}"
        #: None where no metrics are served.
        self.metrics_url: str | None = None

    @property
    def engine_pids(self) -> list[int]:
        """The processes of the embedded engines that run now."""
        return [each.engine.pid for each in self._supervisors if each.engine is not None]

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
    settings: Settings,
    environment: Mapping[str, str],
    tell: Tell,
    *,
    pace: Pace | None = None,
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
        opener = Opener(environment, pool, tell, stack, pace or Pace())
        for number, given in enumerate(settings.upstream, 1):
            await opener.open(given, f"upstream-{number}")
        models = opener.models
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
        limits = ServerLimits(body_bytes=settings.request_bytes)
        listener = await Listener.open(
            endpoint, settings.host, settings.port, tls=tls, limits=limits
        )
        stack.push_async_callback(listener.close)
        stack.callback(endpoint.stop_all)
        running = Running(settings, endpoint, listener, opener)
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
