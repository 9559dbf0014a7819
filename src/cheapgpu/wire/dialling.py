"""Opens connections: names resolved, addresses tried in turn, TLS, all within one time.

Nothing is read from the environment: no proxy stands between.
"""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from cheapgpu.wire.client_connection import ClientConnection
from cheapgpu.wire.sending import Origin, Problem

#: The family of an address, and what the system's calls take for it.
_Address = tuple[socket.AddressFamily, Any]
#: Seconds that the peer of a TLS connection has to say goodbye.
_GOODBYE_SECONDS: Final = 2.0


class DialError(Exception):
    """No connection came about."""

    def __init__(self, problem: Problem, detail: str) -> None:
        super().__init__(detail)
        #: At what it failed.
        self.problem: Problem = problem
        #: Why, in words.
        self.detail = detail


async def dial(
    origin: Origin, protocol: Callable[[], ClientConnection], seconds: float
) -> ClientConnection:
    """An open connection to `origin`, within some seconds. Raises DialError."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    stage: Problem = "connect"
    try:
        async with asyncio.timeout(seconds):
            host = origin.address or origin.host
            sock = await _connect(await _resolve(host, origin.port), until)
            stage = "tls" if origin.tls is not None else "connect"
            return await _open(origin, sock, protocol)
    except TimeoutError:
        what = "connection" if stage == "connect" else "TLS handshake"
        raise DialError(stage, f"no {what} within {seconds:g} s") from None
    except (OSError, ssl.CertificateError) as error:
        raise DialError(stage, _why(error, stage)) from None


async def _open(
    origin: Origin, sock: socket.socket, protocol: Callable[[], ClientConnection]
) -> ClientConnection:
    tls: dict[str, Any] = {}
    if origin.tls is not None:
        name = origin.server_name or origin.host
        tls = {"ssl": origin.tls, "server_hostname": name, "ssl_shutdown_timeout": _GOODBYE_SECONDS}
    try:
        _, connection = await asyncio.get_running_loop().create_connection(
            protocol, sock=sock, **tls
        )
    except BaseException:
        sock.close()
        raise
    return connection


async def _connect(addresses: list[_Address], until: float) -> socket.socket:
    """A socket connected to the first address that answers; raises the last one's OSError."""
    loop = asyncio.get_running_loop()
    for number, (family, address) in enumerate(addresses, 1):
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)  # noqa: FBT003 -- as the socket module has it
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            share = (until - loop.time()) / (len(addresses) - number + 1)
            async with asyncio.timeout(share):
                await loop.sock_connect(sock, address)
                return sock
        except OSError:  # TimeoutError is one
            sock.close()
            if number == len(addresses):
                raise
        except BaseException:
            sock.close()
            raise
    raise socket.gaierror("no address")


async def _resolve(host: str, port: int) -> list[_Address]:
    """The addresses of a name, with their families.

    In a thread of its own, which nobody waits for: a resolver may hang for a minute, and the event
    loop's own threads are joined before the program may end. An address needs none.
    """
    with suppress(OSError, UnicodeError):
        return _look_up(host, port, socket.AI_NUMERICHOST)
    loop = asyncio.get_running_loop()
    result: asyncio.Future[list[_Address]] = loop.create_future()

    def settle(addresses: list[_Address], error: OSError | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(addresses)

    def look_up() -> None:
        addresses: list[_Address] = []
        problem: OSError | None = None
        try:
            addresses = _look_up(host, port)
        except OSError as error:
            problem = error
        except UnicodeError:  # a label too long to be a name
            problem = socket.gaierror("no name")
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, addresses, problem)

    threading.Thread(target=look_up, name="resolver", daemon=True).start()
    return await result


def _look_up(host: str, port: int, flags: int = 0) -> list[_Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]


def _why(error: OSError | ssl.CertificateError, stage: Problem) -> str:
    """Why no connection came about, in the system's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {(error.reason or 'the connection ended').lower().replace('_', ' ')}"
    if stage == "tls":
        return "TLS failed: the connection ended"
    if isinstance(error, socket.gaierror):
        return "the name cannot be resolved"
    if isinstance(error, ConnectionRefusedError):
        return "the connection is refused"
    return f"no connection: {(error.strerror or type(error).__name__).lower()}"
