"""One connection whose every read is stamped with the time at which it came."""

import asyncio
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple, cast

from cheapgpu.core.errors import CheapGPUError
from cheapgpu.wire.target import Target

#: Seconds that the peer of a finished exchange has to say goodbye.
_CLOSE_SECONDS: Final = 0.2

Clock = Callable[[], float]
#: The family of an address, and what the system's calls take for it.
_Address = tuple[socket.AddressFamily, Any]


class ConnectError(CheapGPUError):
    """No connection came about; the message says why."""

    def __init__(
        self, detail: str, remedy: str, how: Literal["reset", "timeout"] = "reset"
    ) -> None:
        super().__init__(detail)
        #: What to look at first.
        self.remedy = remedy
        #: How the exchange ended by it.
        self.how: Literal["reset", "timeout"] = how


class Arrival(NamedTuple):
    """What one read brought: bytes, or the end of the connection."""

    t: float
    #: Empty at the end.
    data: bytes
    #: What broke the connection; "" if the peer ended it in good order.
    broken: str = ""


class Connection(asyncio.Protocol):
    """A connection to an endpoint; `connect` opens it.

    Who takes its arrivals takes them in every turn of the event loop, so that no more than a read
    or two is ever held here.
    """

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._transport: asyncio.Transport
        self._arrivals: deque[Arrival] = deque()
        #: Whether the end has come, ours or the peer's: nothing that arrives later is kept.
        self._ended = False
        self._change: asyncio.Future[None] | None = None
        self._lost = asyncio.get_running_loop().create_future()
        #: When all that was written had been handed to the network; None until then.
        self.drained: float | None = None

    def write(self, data: bytes) -> None:
        """Send bytes; `drained` tells when the last of them has left."""
        transport = self._transport
        transport.set_write_buffer_limits(high=0)
        self.drained = self._now()
        transport.write(data)
        if self.drained is not None:
            self.drained = self._now()

    def take(self) -> Arrival | None:
        """The next read that has come, or None if none has."""
        return self._arrivals.popleft() if self._arrivals else None

    async def wait(self, seconds: float) -> None:
        """Wait until something more has happened, at most for some seconds."""
        loop = asyncio.get_running_loop()
        change = self._change = loop.create_future()
        timer = loop.call_later(seconds, self._changed)
        try:
            await change
        finally:
            timer.cancel()

    async def rest(self, seconds: float) -> None:
        """Take nothing from the network for a while, as a client does that cannot keep up."""
        if self._ended:
            return
        self._transport.pause_reading()
        await asyncio.sleep(seconds)
        self._transport.resume_reading()

    async def close(self) -> None:
        """End the connection in good order, or by force if the peer takes its time."""
        self._ended = True
        self._transport.close()
        try:
            await asyncio.wait([self._lost], timeout=_CLOSE_SECONDS)
        finally:
            self.abort()
        await asyncio.wait([self._lost], timeout=_CLOSE_SECONDS)

    def abort(self) -> None:
        """End the connection at once."""
        self._transport.abort()

    # --- called by the transport ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)  # of a stream, both ways

    def data_received(self, data: bytes) -> None:
        """Stamp a read."""
        if not self._ended:
            self._add(Arrival(self._now(), data))

    def eof_received(self) -> None:
        """Stamp the end; the transport then closes itself."""
        self._end("")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stamp a connection that broke."""
        self._end(_breach(exc) if exc is not None else "")
        self._lost.set_result(None)

    def pause_writing(self) -> None:
        """Some of what was written waits for the network."""
        self.drained = None

    def resume_writing(self) -> None:
        """Nothing waits any more."""
        self.drained = self._now()
        self._changed()

    def _end(self, broken: str) -> None:
        if not self._ended:
            self._ended = True
            self._add(Arrival(self._now(), b"", broken))

    def _add(self, arrival: Arrival) -> None:
        self._arrivals.append(arrival)
        self._changed()

    def _changed(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)


async def connect(
    target: Target,
    context: ssl.SSLContext | None,
    now: Clock,
    *,
    seconds: float,
    buffer: int | None = None,
) -> Connection:
    """Open a connection to `target`, secured by `context` if it is an https URL.

    `buffer` is how much the system may receive in advance (bytes); None leaves that to the system.

    The name's addresses are tried in the resolver's order, each for its share of the time. Nothing
    is read from the environment: no proxy stands between. Raises ConnectError.
    """
    until = now() + seconds
    stage = "connection"
    try:
        async with asyncio.timeout(seconds):
            sock = await _dial(await _resolve(target.host, target.port), now, until, buffer)
            stage = "TLS handshake"
            return await _open(target, sock, context, now)
    except TimeoutError:
        remedy = (
            "check host and port, and that no firewall drops the connection"
            if stage == "connection"
            else "if the endpoint speaks plain HTTP, write http://"
        )
        raise ConnectError(f"no {stage} within {seconds:.2g} s", remedy, "timeout") from None
    except OSError as error:
        raise _connect_error(error, target) from None


async def _dial(
    addresses: list[_Address], now: Clock, until: float, buffer: int | None
) -> socket.socket:
    """A socket connected to the first address that answers; raises the last one's OSError."""
    for number, (family, address) in enumerate(addresses, 1):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.settimeout(0)
        if buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        try:
            async with asyncio.timeout((until - now()) / (len(addresses) - number + 1)):
                await asyncio.get_running_loop().sock_connect(sock, address)
                return sock
        except OSError:  # TimeoutError is one
            sock.close()
            if number == len(addresses):
                raise
        except BaseException:
            sock.close()
            raise
    raise socket.gaierror("no address")


async def _open(
    target: Target, sock: socket.socket, context: ssl.SSLContext | None, now: Clock
) -> Connection:
    tls: dict[str, Any] = {}
    if target.secure:
        tls = {"ssl": context or ssl.create_default_context(), "server_hostname": target.host}
        tls["ssl_shutdown_timeout"] = _CLOSE_SECONDS
    try:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: Connection(now), sock=sock, **tls)
    except BaseException:
        sock.close()
        raise
    return connection


async def _resolve(host: str, port: int) -> list[_Address]:
    """The addresses of a name, with their families.

    In a thread of its own, which nobody waits for: a resolver may hang for a minute, and the event
    loop's own threads are joined before the program may end.
    """
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
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = [(family, address) for family, _, _, _, address in found]
        except OSError as error:
            problem = error
        except UnicodeError:  # a label too long to be a name
            problem = socket.gaierror("no name")
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, addresses, problem)

    threading.Thread(target=look_up, name="resolver", daemon=True).start()
    return await result


def _connect_error(error: OSError, target: Target) -> ConnectError:
    if isinstance(error, socket.gaierror):
        return ConnectError(
            f"the name {target.host} cannot be resolved",
            "check the host in the URL, and the network's name service",
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConnectError(
            f"the certificate is not accepted: {error.verify_message}",
            "an authority of your own is given with --ca FILE; a wrong name is for the server's "
            "owner to repair",
        )
    if isinstance(error, ssl.SSLError):
        return ConnectError(
            f"TLS failed: {_tls_reason(error)}", "if the endpoint speaks plain HTTP, write http://"
        )
    if isinstance(error, ConnectionRefusedError):
        return ConnectError("connection refused", "check that the endpoint runs, and its port")
    if isinstance(error, ConnectionError):
        return ConnectError(
            "the connection was closed while it was opened",
            "check that the URL's scheme and port are those of the endpoint",
        )
    return ConnectError(_system_reason(error), "check host and port, and the way to them")


def _breach(error: Exception) -> str:
    """What broke an open connection, in words."""
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {_tls_reason(error)}"
    if isinstance(error, ConnectionResetError):
        return "connection reset by the endpoint"
    return _system_reason(error) if isinstance(error, OSError) else type(error).__name__


def _tls_reason(error: ssl.SSLError) -> str:
    return (error.reason or "the connection ended").lower().replace("_", " ")


def _system_reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
