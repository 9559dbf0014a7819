"""Plays answers over HTTP/1.1, in their time: one simulated endpoint on one port."""

import asyncio
import fcntl
import socket
import struct
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

import h11

from cheapgpu.core.limits import HEAD_BYTES, HEAD_SECONDS, REQUEST_BYTES
from cheapgpu.simulate.answer import Answer, Wire, error_answer, rendered
from cheapgpu.simulate.asked import Asked, Message
from cheapgpu.simulate.endpoint import (
    INFERENCE_PATH,
    Endpoint,
    SimulateError,
    respond,
    understood,
)

_READ_BYTES: Final = 65_536
#: Connections at once; more are refused with 503.
_CONNECTIONS: Final = 256
#: Seconds: until a request begins, and from then until it has come whole.
_IDLE_SECONDS: Final = 75.0
_REQUEST_SECONDS: Final = HEAD_SECONDS + 30.0
#: Seconds that a client has to take the last bytes of a connection that is closed.
_CLOSE_SECONDS: Final = 1.0
#: Seconds that a reset waits at least, so that what was sent before is read before it; and how
#: often so long for a client that reads slowly.
_BEFORE_RESET: Final = 0.05
_MOST_WAITS: Final = 100
#: Seconds for which the only slot stays busy after a client has left (habit `slot-kept`).
_SLOT_SECONDS: Final = 60.0
#: Requests whose bodies take the server down (habit `falls-over`).
_HOSTILE: Final = frozenset(
    f"refuse/{name}"
    for name in (
        "not-json",
        "empty-body",
        "not-an-object",
        "duplicate-key",
        "invalid-utf8",
        "lone-surrogate",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Received:
    """A request, or why it is none, and what else came with it."""

    message: Message | Answer
    left_over: bytes = b""
    #: Whether the connection can carry another request.
    keep: bool = False


class Simulation:
    """A simulated endpoint: `handle` serves a connection, as asyncio's servers call it.

    `heard` is told every request for an answer, refused or not.
    """

    def __init__(self, endpoint: Endpoint, heard: Callable[[Asked], None] | None = None) -> None:
        self._endpoint = endpoint
        self._heard = heard
        self._connections = 0
        self._requests = 0
        #: The last request for which the model was put to work.
        self._before: Asked | None = None
        self._fallen = False
        #: The loop's time until which the only slot is busy.
        self._busy_until = 0.0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends; then it is closed."""
        self._connections += 1
        try:
            with suppress(ConnectionError, TimeoutError):
                if self._connections > _CONNECTIONS:
                    busy = error_answer(503, "too many connections", "server_error")
                    await _write(rendered(replace(busy, ending="cut")), writer)
                else:
                    await self._serve(reader, writer)
        finally:
            self._connections -= 1
            await _close(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left_over = b""
        while True:
            received = await _receive(reader, writer, left_over)
            if received is None:
                return
            if self._fallen:
                self._fallen = False
                return
            wire, inferred = self._answered(received)
            now = asyncio.get_running_loop().time
            begins = max(now(), self._busy_until) if inferred else now()
            stayed, more = await _played(wire, begins - now(), reader, writer)
            if not stayed:
                if inferred and "slot-kept" in self._endpoint.habits:
                    self._busy_until = now() + _SLOT_SECONDS
                elif inferred and "works-on" in self._endpoint.habits:
                    self._busy_until = begins + sum(piece.wait for piece in wire.pieces)
                return
            if wire.ending != "end" or not received.keep:
                return
            left_over = received.left_over + more

    def _answered(self, received: _Received) -> tuple[Wire, bool]:
        """Decide on the answer to a request, and whether the model is put to work for it."""
        asked: Asked | Answer
        if isinstance(received.message, Message):
            asked = understood(
                self._endpoint, received.message, number=self._requests + 1, before=self._before
            )
        else:
            asked = received.message
        if isinstance(asked, Answer):
            return rendered(asked if received.keep else replace(asked, ending="cut")), False
        self._requests += 1
        if self._heard is not None:
            self._heard(asked)
        wire, inferred = respond(self._endpoint, asked)
        if inferred:
            self._before = replace(asked, before=None)
        self._fallen = "falls-over" in self._endpoint.habits and asked.rule in _HOSTILE
        return wire, inferred


@asynccontextmanager
async def serving(
    endpoint: Endpoint,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    heard: Callable[[Asked], None] | None = None,
) -> AsyncIterator[str]:
    """Serve an endpoint for as long as the block lasts, and give its inference_url.

    Port 0 takes any that is free. Raises SimulateError if the address cannot be had.
    """
    simulation = Simulation(endpoint, heard)
    handling: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            handling.add(task)
            task.add_done_callback(handling.discard)
        with suppress(asyncio.CancelledError):
            await simulation.handle(reader, writer)

    try:
        server = await asyncio.start_server(handle, host, port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "the port must be 0 to 65535"
        raise SimulateError(f"{host} port {port}: {reason}; give another --port") from None
    try:
        taken = server.sockets[0].getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        yield f"http://{name}:{taken}{endpoint.path or INFERENCE_PATH}"
    finally:
        server.close()
        for task in tuple(handling):
            task.cancel()
        await asyncio.gather(*handling, return_exceptions=True)


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection in good order, or by force if its client takes nothing more."""
    writer.close()
    with suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await writer.wait_closed()
    writer.transport.abort()


async def _receive(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left_over: bytes
) -> _Received | None:
    """The next request; None where the client has gone, or sends nothing for too long."""
    http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
    if not left_over:
        async with asyncio.timeout(_IDLE_SECONDS):
            left_over = await reader.read(_READ_BYTES)
        if not left_over:
            return None
    http.receive_data(left_over)
    try:
        async with asyncio.timeout(_REQUEST_SECONDS):
            return await _request(http, reader, writer)
    except h11.RemoteProtocolError as error:
        status = error.error_status_hint if error.error_status_hint == 431 else 400
        return _Received(message=error_answer(status, "not HTTP/1.1", "invalid_request_error"))


async def _request(
    http: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> _Received | None:
    head: h11.Request | None = None
    body = b""
    while True:
        event = http.next_event()
        match event:
            case h11.Request():
                head = event
            case h11.Data():
                body += event.data
                if len(body) > REQUEST_BYTES:
                    message = f"body: at most {REQUEST_BYTES} bytes are taken"
                    return _Received(message=error_answer(413, message, "invalid_request_error"))
            case h11.EndOfMessage() if head is not None:
                keep = http.states[h11.CLIENT] is h11.DONE
                left_over = bytes(http.trailing_data[0])
                return _Received(message=_message(head, body), left_over=left_over, keep=keep)
            case h11.NEED_DATA:
                if http.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    writer.write(http.send(go_on))
                data = await reader.read(_READ_BYTES)
                if not data:
                    return None
                http.receive_data(data)
            case _:
                return None


def _message(head: h11.Request, body: bytes) -> Message:
    fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    return Message(
        method=head.method.decode("latin-1"),
        path=head.target.decode("latin-1").partition("?")[0],
        content_type=fields.get("content-type"),
        authorization=fields.get("authorization"),
        body=body,
    )


async def _played(
    wire: Wire, wait: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[bool, bytes]:
    """Send an answer; whether the client stayed for it, and what it sent meanwhile."""
    writing = asyncio.create_task(_write(wire, writer, wait=wait))
    watching = asyncio.create_task(_heard_while(reader))
    try:
        await asyncio.wait((writing, watching), return_when=asyncio.FIRST_COMPLETED)
        more = watching.result() if watching.done() else b""
        if more is None:
            return False, b""
        await writing
        return True, more
    except ConnectionError:
        return False, b""
    finally:
        for task in (writing, watching):
            task.cancel()
        await asyncio.gather(writing, watching, return_exceptions=True)


async def _heard_while(reader: asyncio.StreamReader) -> bytes | None:
    """What a client sends while it is answered; None once it has gone."""
    try:
        return await reader.read(_READ_BYTES) or None
    except ConnectionError:
        return None


async def _write(wire: Wire, writer: asyncio.StreamWriter, *, wait: float = 0.0) -> None:
    """Send the pieces of an answer, each when it is due, and end as it says."""
    loop = asyncio.get_running_loop()
    due = loop.time() + wait
    for piece in wire.pieces:
        due += piece.wait
        # Also where nothing is to be waited for: others may read before more is written.
        await asyncio.sleep(max(0.0, due - loop.time()))
        writer.write(piece.data)
        await writer.drain()
    if wire.ending == "hang":
        await asyncio.get_running_loop().create_future()
    if wire.ending == "reset":
        connection: socket.socket = writer.get_extra_info("socket")
        await _delivered(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


async def _delivered(connection: socket.socket) -> None:
    """Wait, within limits, until nothing that was sent can be lost any more."""
    for _ in range(_MOST_WAITS):
        await asyncio.sleep(_BEFORE_RESET)
        try:
            left = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0]
        except OSError:  # a system that does not tell
            return
        if not left:
            return
