"""A bound port: accepts connections for a service, drains, closes."""

import asyncio
import ssl
from pathlib import Path
from typing import Final, Self

from cheapgpu.core.errors import CheapGPUError
from cheapgpu.wire.request_reader import ServerLimits
from cheapgpu.wire.server import LINGER_SECONDS, Connections, ServerConnection, Service
from cheapgpu.wire.sweeper import Sweeper

#: Connections that the system holds until they are accepted.
_BACKLOG: Final = 4096


class ListenError(CheapGPUError):
    """An address or a certificate cannot be used; the message names it and the remedy."""


class Listener:
    """A port that serves."""

    def __init__(self, connections: Connections, server: asyncio.Server) -> None:
        self._connections = connections
        self._server = server
        #: The port that was bound.
        self.port: int = server.sockets[0].getsockname()[1]
        limits = connections.limits
        shortest = min(limits.head_seconds, limits.body_seconds, limits.idle_seconds)
        self._sweeper = Sweeper(min(1.0, shortest / 2, limits.stall_seconds / 2))
        self._sweeper.add(self)
        self._sweeper.start()

    @classmethod
    async def open(
        cls,
        service: Service,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        limits: ServerLimits | None = None,
    ) -> Self:
        """Listen on an address; port 0 takes any that is free. Raises ListenError."""
        connections = Connections(service, limits or ServerLimits())
        if not 0 <= port < 1 << 16:  # uvloop would take its lower half
            raise ListenError(f"{host} port {port}: ports are 0 to 65535; give another address")
        try:
            server = await connections.loop.create_server(
                lambda: ServerConnection(connections),
                host,
                port,
                ssl=tls,
                backlog=_BACKLOG,
                # Without it a client could stay in its handshake, where nothing counts it.
                ssl_handshake_timeout=connections.limits.head_seconds if tls else None,
                ssl_shutdown_timeout=LINGER_SECONDS if tls else None,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ListenError(f"{host} port {port}: {reason}; give another address") from None
        return cls(connections, server)

    @property
    def calls(self) -> int:
        """How many requests are being answered."""
        return self._connections.calls

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections.open)

    def sweep(self, now: float) -> None:
        """Look at the clock for every connection."""
        for connection in tuple(self._connections.open):
            connection.sweep(now)

    async def drain(self, seconds: float) -> bool:
        """Accept nothing new, and wait at most so long for the answers that are in progress.

        Returns whether all of them have ended.
        """
        connections = self._connections
        self._server.close()
        connections.draining = True
        for connection in tuple(connections.open):
            connection.drain()
        connections.quiet = connections.quiet or connections.loop.create_future()
        connections.check_quiet()
        await asyncio.wait({connections.quiet}, timeout=seconds)
        return not connections.calls

    async def close(self) -> None:
        """Accept nothing new, and cut what is left; answers that were written leave first."""
        connections = self._connections
        self._server.close()
        self._sweeper.stop()
        connections.draining = True
        for connection in tuple(connections.open):
            if connection.busy:
                connection.leave()
            else:
                connection.close()
        connections.empty = connections.empty or connections.loop.create_future()
        connections.check_quiet()
        await asyncio.wait({connections.empty}, timeout=LINGER_SECONDS)
        for connection in tuple(connections.open):
            connection.cut()
        await asyncio.wait({connections.empty}, timeout=LINGER_SECONDS)


def server_tls(cert: Path, key: Path) -> ssl.SSLContext:
    """The TLS settings of a server with this certificate chain and key (PEM); TLS 1.2 or newer.

    Raises ListenError if they cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    for name, path in (("certificate", cert), ("key", key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise ListenError(f"the TLS {name} {path}: {error.strerror}") from None
    try:
        context.load_cert_chain(cert, key, password=lambda: "")  # or else it asks the terminal
    except (ssl.SSLError, ValueError):
        raise ListenError(
            f"{cert} and {key} are no certificate and its key; give PEM files"
        ) from None
    return context
