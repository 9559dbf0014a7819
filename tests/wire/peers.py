"""Raw clients and scripted servers on loopback, and who is told what, for tests of the wire."""

import asyncio
import gc
import socket
import ssl
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Literal, NamedTuple

from cheapgpu.wire.client import Origin, Problem
from cheapgpu.wire.listener import Listener, server_tls
from cheapgpu.wire.message import RequestHead, Response
from cheapgpu.wire.server import Call, ServerLimits
from tests.check.servers import CERTIFICATE, TLS

TEXT: Final = b"content-type: text/plain\r\n"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Desk:
    """A service: what it was asked, and answers as the path says."""

    def __init__(self) -> None:
        self.admitted: list[RequestHead] = []
        self.served: list[Call] = []
        self.reasons: list[tuple[int, str]] = []
        #: Calls to /hold, which the test answers.
        self.held: asyncio.Queue[Call] = asyncio.Queue()
        #: Whether each call was made to a client that reads too slowly.
        self.paused: list[bool] = []

    def admit(self, head: RequestHead) -> Response | None:
        """Refuse /no."""
        self.admitted.append(head)
        if head.path == "/admit-fails":
            raise RuntimeError("a fault")
        return Response(401, b"refused", TEXT) if head.path == "/no" else None

    def serve(self, call: Call) -> None:
        """Answer with the body, or as the path says."""
        self.served.append(call)
        self.paused.append(call.paused)
        path = call.head.path
        if path == "/hold":
            self.held.put_nowait(call)
        elif path == "/fails":
            raise RuntimeError("a fault")
        elif path == "/fails-later":
            call.start(200, TEXT)
            call.write(b"begun")
            raise RuntimeError("a fault")
        elif path == "/large":
            call.respond(Response(200, bytes(1 << 20), TEXT))
        elif path == "/nothing":
            call.respond(Response(204))
        elif path == "/pieces":
            call.start(200, TEXT)
            call.write(b"one")
            call.write(b"two")
            call.end()
        else:
            call.respond(Response(200, call.body or b"ok", TEXT))

    def refuse(self, status: int, reason: str) -> Response:
        """The reason itself."""
        self.reasons.append((status, reason))
        return Response(status, reason.encode(), TEXT)


@asynccontextmanager
async def listening(desk: Any, *, secure: bool = False, **limits: Any) -> AsyncGenerator[Listener]:
    """A listener for a service, with these limits."""
    tls = server_tls(CERTIFICATE, TLS / "key.pem") if secure else None
    listener = await Listener.open(desk, "127.0.0.1", 0, tls=tls, limits=ServerLimits(**limits))
    try:
        yield listener
    finally:
        await listener.close()


class Answer(NamedTuple):
    """An answer as its bytes say it."""

    status: int
    fields: dict[str, str]
    body: bytes


class Peer:
    """A raw client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *data: bytes) -> None:
        """Send bytes."""
        self.writer.write(b"".join(data))

    async def rest(self) -> bytes:
        """All that comes until the server closes; a reset fails."""
        return await self.reader.read()

    async def answer(self, *, bare: bool = False) -> Answer:
        """One answer, read by its framing; a `bare` one has no body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        line, *lines = head[:-4].split("\r\n")
        fields = {}
        for each in lines:
            name, _, value = each.partition(": ")
            assert name not in fields
            fields[name] = value
        status = int(line.split()[1])
        body = b"" if bare or status < 200 else await self._body(fields)
        return Answer(status, fields, body)

    async def _body(self, fields: dict[str, str]) -> bytes:
        if "content-length" in fields:
            return await self.reader.readexactly(int(fields["content-length"]))
        if "transfer-encoding" not in fields:
            return await self.rest()
        body = b""
        while True:
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            piece = await self.reader.readexactly(size + 2)
            if not size:
                return body
            body += piece[:-2]

    async def closed(self) -> bool:
        """Whether the server ends the connection, in whatever way, without another byte."""
        try:
            return not await self.reader.read()
        except ConnectionError:
            return True

    def reset(self) -> None:
        """Break the connection."""
        reset(self.writer)


def reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def connected(
    port: int, *, secure: bool = False, window: int | None = None
) -> AsyncGenerator[Peer]:
    """A raw client; a small `window` makes one that takes little before it reads."""
    one = socket.socket()
    if window is not None:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    one.setblocking(False)  # noqa: FBT003 -- the socket's own word
    try:
        await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", port))
    except OSError:
        one.close()
        raise
    tls = ssl.create_default_context(cafile=CERTIFICATE) if secure else None
    reader, writer = await asyncio.open_connection(
        sock=one,
        limit=window or 1 << 16,
        ssl=tls,
        server_hostname="localhost" if secure else None,
    )
    try:
        yield Peer(reader, writer)
    finally:
        writer.transport.abort()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


def request(
    method: str = "POST",
    path: str = "/",
    body: bytes = b"",
    lines: bytes = b"",
    version: str = "1.1",
) -> bytes:
    """A request in good order."""
    start = f"{method} {path} HTTP/{version}\r\nHost: here\r\n".encode()
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return start + lines + length + b"\r\n" + body


async def exchanged(port: int, *data: bytes) -> bytes:
    """All that the server sends a client who sends this, until it closes."""
    async with connected(port) as peer:
        peer.send(*data)
        return await peer.rest()


async def until(true: Callable[[], object]) -> None:
    """Wait until something holds; the test's own limit ends it if it never does."""
    while not true():  # noqa: ASYNC110 -- what is waited for tells nobody
        await asyncio.sleep(0.005)


def living(kind: type) -> int:
    """How many objects of a kind exist, whether or not anything still uses them."""
    return sum(type(each) is kind for each in gc.get_objects())


class Watcher:
    """Who is told what the client of a call does."""

    def __init__(self, call: Call) -> None:
        self.told: list[str] = []
        call.client = self

    def gone(self) -> None:
        """It has left."""
        self.told.append("gone")

    def pause(self) -> None:
        """It reads too slowly."""
        self.told.append("pause")

    def resume(self) -> None:
        """It has caught up."""
        self.told.append("resume")


class Taker:
    """Who is told what comes back of a request."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.over = asyncio.get_running_loop().create_future()

    def head_received(self, status: int, fields: dict[bytes, bytes]) -> None:
        """Keep the head."""
        assert not self.over.done()
        self.told.append(("head", status, fields))

    def body_received(self, data: bytes) -> None:
        """Keep a piece."""
        assert not self.over.done()
        self.told.append(("body", data))

    def ended(self, ending: Literal["whole", "cut"]) -> None:
        """Keep the end, which comes once."""
        self.told.append(("ended", ending))
        self.over.set_result(self.told[-1])

    def failed(self, problem: Problem, detail: str) -> None:
        """Keep the failure, which comes once."""
        self.told.append(("failed", problem, detail))
        self.over.set_result(self.told[-1][:2])

    @property
    def body(self) -> bytes:
        """The body so far."""
        return b"".join(each[1] for each in self.told if each[0] == "body")


class Script:
    """A server that answers each request with the next of its scripts, and remembers them."""

    def __init__(self, *scripts: Any) -> None:
        self._scripts = list(scripts)
        self.seen: list[bytes] = []
        self.connections = 0
        #: How many connections their clients have closed.
        self.left = 0
        #: Set by the test to let a script that waits go on.
        self.go_on = asyncio.Event()
        self.writers: list[asyncio.StreamWriter] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection: bytes are sent, "reset" and "close" do so, "wait" waits."""
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                self.seen.append(head + await reader.readexactly(int(length or b"0")))
                for step in self._scripts.pop(0):
                    if step == "wait":
                        await self.go_on.wait()
                    elif step == "reset":
                        reset(writer)
                    elif step == "close":
                        writer.close()
                    elif step == "eof":
                        writer.write_eof()
                    else:
                        writer.write(step)
                        await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left += 1


@asynccontextmanager
async def scripted(
    *scripts: Any, handler: Handler | None = None, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[tuple[Script, Origin]]:
    """A scripted server, and where it is."""
    script = Script(*scripts)
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await (handler or script.handle)(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            writer.transport.abort()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    try:
        yield script, Origin("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)
