"""Servers on loopback that answer as a script says, right or wrong, for tests of who asks them."""

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

TLS: Final = Path(__file__).parent.parent / "data" / "tls"
CERTIFICATE: Final = TLS / "certificate.pem"

#: Steps of a script besides bytes (sent at once) and numbers (seconds to wait).
HANG: Final = "say no more, but keep the connection open"
RESET: Final = "break the connection"

STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def chunked(*bodies: bytes) -> bytes:
    """Bodies as chunks of HTTP/1.1, without the last."""
    return b"".join(b"%x\r\n%b\r\n" % (len(body), body) for body in bodies)


LAST_CHUNK: Final = b"0\r\n\r\n"


@contextmanager
def served(handler: Handler, *, secure: bool = False, host: str = "127.0.0.1") -> Iterator[str]:
    """The base URL of a server that gives every connection to `handler`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    context = None
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE, TLS / "key.pem")
    handling: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            handling.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await handler(reader, writer)
        writer.transport.abort() if writer.is_closing() else writer.close()
        with suppress(ConnectionError, ssl.SSLError, TimeoutError):
            async with asyncio.timeout(1):
                await writer.wait_closed()

    async def start() -> asyncio.Server:
        return await asyncio.start_server(handle, host, 0, ssl=context)

    async def stop(server: asyncio.Server) -> None:
        server.close()
        for task in handling:
            task.cancel()
        await asyncio.gather(*handling, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    port = server.sockets[0].getsockname()[1]
    name = f"[{host}]" if ":" in host else host
    try:
        yield f"http{'s' if secure else ''}://{name}:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(stop(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """One request, head and body as they came."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = head.lower().split(b"\r\n")
    length = next((f for f in fields if f.startswith(b"content-length:")), b":0")
    return head + await reader.readexactly(int(length.partition(b":")[2]))


def answering(*steps: bytes | float | str, seen: list[bytes] | None = None) -> Handler:
    """A handler that reads a request and then does the steps; `seen` collects the requests."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        if seen is not None:
            seen.append(request)
        for step in steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif step == RESET:
                connection: socket.socket = writer.get_extra_info("socket")
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.transport.abort()
            elif step == HANG:
                await asyncio.sleep(60)
            else:
                await asyncio.sleep(float(step))

    return handler


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Accept, and say nothing for ever."""
    await reader.read()
    await asyncio.sleep(60)


def unused_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
