"""How a request finds its connection, and which ends of one are believed."""

import asyncio
import gc
import socket
import ssl
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest

from cheapgpu.wire import client
from cheapgpu.wire.client import Origin, Pool
from cheapgpu.wire.client_connection import ClientConnection
from cheapgpu.wire.listener import server_tls
from cheapgpu.wire.message import request_bytes
from tests.check.servers import CERTIFICATE, TLS
from tests.wire.conftest import Run
from tests.wire.peers import Taker, living, scripted, until

ASK = request_bytes("POST", "/", b"host: there\r\n", b"question")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
UNTIL_THE_END = b"HTTP/1.1 200 OK\r\n\r\npart"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def pooled(**settings: Any) -> AsyncGenerator[Pool]:
    """A pool, closed at the end."""
    pool = Pool(**settings)
    try:
        yield pool
    finally:
        await pool.close()


async def asked(
    pool: Pool, origin: Origin, message: bytes = ASK, *, reusable: bool = True
) -> Taker:
    """One request and all that came of it."""
    taker = Taker()
    pool.send(origin, message, taker, reusable=reusable)
    await taker.over
    return taker


def trusting() -> ssl.SSLContext:
    """Settings that trust the certificate of the tests."""
    return ssl.create_default_context(cafile=CERTIFICATE)


def secured(origin: Origin) -> Origin:
    """The same place, by TLS."""
    return Origin(origin.host, origin.port, tls=trusting(), server_name="localhost")


def test_a_kept_connection_that_was_ended_meanwhile_is_not_used(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An end that has reached this machine is seen before a request is lost to it."""
    monkeypatch.setattr(client, "_AT_ONCE_SECONDS", 0.0)

    async def main() -> tuple[bool, Any]:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            origin = Origin("127.0.0.1", listening.getsockname()[1])

            def serve() -> socket.socket:
                one, _ = listening.accept()
                one.recv(1000)
                one.sendall(OK)
                return one

            async with pooled() as pool:
                first = asyncio.create_task(asyncio.to_thread(serve))
                await asked(pool, origin)
                (await first).close()  # … and the loop has no turn to read that
                taker = Taker()
                sending = pool.send(origin, ASK, taker)
                with await asyncio.to_thread(serve):
                    await taker.over
                    return sending.reused, taker.told[-1]

    assert run(main()) == (False, ("ended", "whole"))


def test_a_request_can_have_a_connection_of_its_own(run: Run) -> None:
    """One that is not reusable takes no kept connection, and leaves none."""

    async def main() -> tuple[int, int]:
        async with scripted([OK], [OK], [OK]) as (script, origin), pooled() as pool:
            await asked(pool, origin)
            await asked(pool, origin, reusable=False)
            await until(lambda: script.left == 1)
            await asked(pool, origin)
            return script.connections, len(pool.open)

    assert run(main()) == (2, 1)


@pytest.mark.parametrize(
    "answer",
    [
        b"RTSP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        b"ICE/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 600 Oh\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 099 Oh\r\ncontent-length: 2\r\n\r\nok",
        b"\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ],
    ids=["rtsp", "ice", "600", "099", "empty-line"],
)
@pytest.mark.parametrize("split", [False, True], ids=["whole", "bytes"])
def test_what_is_no_answer_is_malformed(run: Run, answer: bytes, *, split: bool) -> None:
    """Another protocol or a status that is none is told as such, however the bytes come."""

    async def main() -> list[Any]:
        steps = [answer[at : at + 1] for at in range(len(answer))] if split else [answer]
        async with scripted([*steps, "wait"]) as (_, origin), pooled() as pool:
            return (await asked(pool, origin)).told

    assert run(main()) == [("failed", "malformed", "its first line is not that of HTTP/1.1")]


def test_an_answer_to_head_has_no_body(run: Run) -> None:
    """Its length is that of a body which does not come: nothing is waited for."""

    async def main() -> list[Any]:
        ask = request_bytes("HEAD", "/", b"host: there\r\n")
        head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"
        async with scripted([head, "wait"], [OK]) as (_, origin), pooled() as pool:
            told = (await asked(pool, origin, ask)).told
            assert (await asked(pool, origin)).body == b"ok"
            return [each[:2] for each in told]

    assert run(main()) == [("head", 200), ("ended", "whole")]


@pytest.mark.parametrize(("said", "ending"), [(True, "whole"), (False, "cut")])
def test_an_end_over_tls_must_be_said(run: Run, *, said: bool, ending: str) -> None:
    """A body without framing is whole only if TLS itself was ended (RFC 9112 section 9.8)."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"question")
        writer.write(UNTIL_THE_END)
        await writer.drain()
        if said:
            writer.close()
            return
        # The socket ends below TLS, as if somebody between had ended it.
        connection = writer.get_extra_info("socket")
        with socket.socket(fileno=socket.dup(connection.fileno())) as below:
            below.shutdown(socket.SHUT_WR)
        await reader.read()

    async def main() -> list[Any]:
        tls = server_tls(CERTIFICATE, TLS / "key.pem")
        async with scripted(handler=handle, tls=tls) as (_, origin), pooled() as pool:
            return (await asked(pool, secured(origin))).told[1:]

    assert run(main()) == [("body", b"part"), ("ended", ending)]


@pytest.mark.parametrize("slam", [True, False], ids=["closed", "silent"])
def test_what_goes_wrong_with_tls_is_told_as_that(run: Run, *, slam: bool) -> None:
    """A server that ends a handshake, or says nothing in it, was reached: TLS is what failed."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        if not slam:
            await asyncio.sleep(60)
        writer.transport.abort()

    async def main() -> tuple[Any, ...]:
        async with scripted(handler=handle) as (_, origin), pooled(connect_seconds=0.2) as pool:
            return (await asked(pool, secured(origin))).told[0]

    told = run(main())
    assert told[:2] == ("failed", "tls")
    assert told[2] == (
        "TLS failed: the connection ended" if slam else "no TLS handshake within 0.2 s"
    )


def test_a_resolver_that_hangs_holds_nobody(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is waited for no longer than a connection, and not at all once the program ends."""
    hung = threading.Event()
    look_up = socket.getaddrinfo

    def hang(host: str, port: int, *rest: Any, **more: Any) -> Any:
        if host == "slow.example" and not more.get("flags"):
            hung.wait(60)
        return look_up(host, port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", hang)

    async def main() -> tuple[Any, ...]:
        async with pooled(connect_seconds=0.1) as pool:
            return (await asked(pool, Origin("slow.example", 80))).told[0]

    assert run(main()) == ("failed", "connect", "no connection within 0.1 s")
    hung.set()


def test_another_address_is_tried(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with an address that refuses leads to the next one."""

    async def main() -> bytes:
        async with scripted([OK]) as (_, origin), pooled() as pool:
            with closing(socket.socket()) as taken:
                taken.bind(("127.0.0.1", 0))  # … and nobody listens
                addresses = [taken.getsockname(), ("127.0.0.1", origin.port)]
                found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", one) for one in addresses]
                monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
                return (await asked(pool, Origin("two.example", 80))).body

    assert run(main()) == b"ok"


def test_small_requests_leave_at_once(run: Run) -> None:
    """No side waits for more to send: Nagle's algorithm is off."""
    options: list[int] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"question")
        writer.write(OK)

    async def main() -> None:
        async with scripted(handler=handle) as (_, origin), pooled() as pool:
            await asked(pool, origin)
            for connection in pool.open:
                used = connection._transport.get_extra_info("socket")  # noqa: SLF001 -- none else has it
                options.append(used.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    run(main())
    assert options
    assert all(options)


def test_a_connection_that_has_ended_leaves_nothing_to_collect(run: Run) -> None:
    """Connections hold themselves by no cycle: with a lazy collector they would pile up."""

    async def main() -> tuple[int, int]:
        cut = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsome"
        async with scripted([OK], [cut, "close"], [cut, "wait"]) as (_, origin), pooled() as pool:
            await asked(pool, origin)
            alive = living(ClientConnection)
            await asked(pool, origin)
            taker = Taker()
            sending = pool.send(origin, ASK, taker)
            await until(lambda: taker.body)
            sending.cancel()
            await until(lambda: not pool.open)
            await asyncio.sleep(0.01)
            return alive, living(ClientConnection)

    gc.collect()
    gc.disable()
    try:
        assert run(main()) == (1, 0)
    finally:
        gc.enable()
