"""A bound port: accepts connections for a service, drains, closes."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from cheapgpu.core.errors import CheapGPUError
from cheapgpu.wire.connections import Connections
from cheapgpu.wire.server import ServerLimits, Service
from cheapgpu.wire.server_connection import LINGER_SECONDS, ServerConnection
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
        shortest = min(
            limits.head_seconds, limits.body_seconds, limits.idle_seconds, limits.stall_seconds
        )
        self._sweeper = Sweeper(min(1.0, shortest / 2))
        self._sweeper.add(self)
        self._sweeper.start()

    @classmethod
    async def open(  # noqa: PLR0913 -- what a port is opened with
        cls,
        service: Service,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        limits: ServerLimits | None = None,
        backlog: int = _BACKLOG,
        sock: socket.socket | None = None,
    ) -> Self:
        """Listen on an address, or on a bound socket. Raises ListenError.

        Port 0 takes any that is free, on the first of the host's addresses.
        """
        if not 0 <= port < 1 << 16:  # uvloop would take its lower half
            raise ListenError(f"{host} port {port}: ports are 0 to 65535; give another address")
        limits = limits or ServerLimits()
        connections = Connections(service, limits)
        options: dict[str, Any] = {"backlog": backlog}
        if tls is not None:
            options["ssl"] = tls
            options["ssl_handshake_timeout"] = limits.head_seconds
            options["ssl_shutdown_timeout"] = LINGER_SECONDS
        try:
            server = await _bind(lambda: ServerConnection(connections), host, port, sock, options)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ListenError(f"{host} port {port}: {reason}; give another address") from None
        return cls(connections, server)

    @property
    def calls(self) -> int:
        """How many requests are being answered, or read from their body on."""
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

        Connections without one are closed, the others once it has ended. Returns whether all have.
        """
        connections = self._connections
        self._server.close()
        connections.draining = True
        for connection in tuple(connections.open):
            connection.drain()
        if connections.calls:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await connections.quiet.wait()
        return not connections.calls

    async def close(self) -> None:
        """Accept nothing new, and cut what is left; answers that are over are flushed first."""
        connections = self._connections
        self._server.close()
        connections.draining = True
        for connection in tuple(connections.open):
            connection.close()
        if connections.open:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_SECONDS):
                    await connections.empty.wait()
        self._sweeper.stop()
        for connection in tuple(connections.open):
            connection.cut()
        await asyncio.sleep(0)  # the loop takes leave of the sockets


async def _bind(
    protocol: Callable[[], ServerConnection],
    host: str,
    port: int,
    sock: socket.socket | None,
    options: dict[str, Any],
) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    if sock is not None:
        return await loop.create_server(protocol, sock=sock, **options)
    if port == 0:  # each of several addresses would get a port of its own
        flags = socket.AI_PASSIVE
        found = await loop.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM, flags=flags)
        host = str(found[0][4][0])
    return await loop.create_server(protocol, host, port, **options)


def server_tls(cert: Path, key: Path) -> ssl.SSLContext:
    """The TLS settings of a server with this certificate chain and key (PEM); TLS 1.2 or newer.

    Raises ListenError if they cannot be used.
    """
    for name, path in (("certificate", cert), ("key", key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise ListenError(f"the TLS {name} {path}: {error.strerror}; give a PEM file") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cert)
    except ssl.SSLError:
        raise ListenError(f"the TLS certificate {cert} is none; give a PEM file") from None
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ListenError(f"the TLS key {key} is not that of {cert}; give its key") from None
        raise ListenError(f"the TLS key {key} is none; give a PEM file") from None
    except _EncryptedKeyError:
        raise ListenError(
            f"the TLS key {key} is encrypted; give one that is not, readable by this program alone"
        ) from None
    return context


class _EncryptedKeyError(Exception):
    pass


def _no_password() -> NoReturn:
    # Otherwise OpenSSL asks at the terminal, and a server would wait there for ever.
    raise _EncryptedKeyError
