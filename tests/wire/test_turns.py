"""Requests behind requests: each has its turn, and what waits neither costs nor hides anything."""

import asyncio
import gc

import pytest

from cheapgpu.wire.message import Response
from cheapgpu.wire.server_connection import ServerConnection
from tests.wire.conftest import Run
from tests.wire.peers import (
    TEXT,
    Desk,
    Watcher,
    connected,
    exchanged,
    listening,
    living,
    request,
    until,
)

GET = request("GET")
HOLD = request("GET", "/hold")
CHUNKED = b"POST /chunked HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def test_a_refusal_comes_before_the_size_of_the_body(run: Run) -> None:
    """Who is not admitted is told that, and not how much others may send."""

    async def main() -> tuple[bytes, list[tuple[int, str]]]:
        desk = Desk()
        async with listening(desk) as listener:
            asked = b"POST /no HTTP/1.1\r\nHost: here\r\nContent-Length: 99999999\r\n\r\n"
            return await exchanged(listener.port, asked), desk.reasons

    answer, reasons = run(main())
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"\r\nconnection: close\r\n" in answer
    assert reasons == []


def test_a_client_that_leaves_is_noticed_behind_what_it_pipelined(run: Run) -> None:
    """Requests that wait are held while reading goes on: only so is a leaving seen."""

    async def main() -> list[str]:
        desk = Desk()
        async with listening(desk) as listener:
            async with connected(listener.port) as peer:
                peer.send(HOLD, GET * 100)
                watcher = Watcher(await desk.held.get())
            await until(lambda: watcher.told)
            assert len(desk.admitted) == 1
            return watcher.told

    assert run(main()) == ["gone"]


def test_what_is_held_is_bounded(run: Run) -> None:
    """During an answer reading stops once a little was held, and goes on after it."""

    async def main() -> tuple[int, int]:
        desk = Desk()
        async with (
            listening(desk, body_bytes=64 << 20) as listener,
            connected(listener.port) as peer,
        ):
            peer.send(HOLD, request(body=bytes(32 << 20)))
            call = await desk.held.get()
            connection = call._connection  # noqa: SLF001 -- what it holds is nobody else's affair
            assert isinstance(connection, ServerConnection)
            await until(lambda: connection._deaf)  # noqa: SLF001 -- as above
            held = connection._reader.ahead  # noqa: SLF001 -- as above
            call.respond(Response(200))
            await peer.answer()
            return held, len((await peer.answer()).body)

    held, length = run(main())
    assert held < 1 << 20
    assert length == 32 << 20


@pytest.mark.parametrize("split", [False, True], ids=["one-read", "two-reads"])
def test_what_follows_a_chunked_body_is_not_confused_with_it(run: Run, *, split: bool) -> None:
    """A request behind a chunked one is served if it comes by itself; else the client is told."""

    async def main() -> tuple[list[str], bytes]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            if split:
                peer.send(CHUNKED, b"2\r\nok\r\n", END)
                first = await peer.answer()
                peer.send(request("GET", "/next", lines=b"Connection: close\r\n"))
                rest = await peer.rest()
            else:
                peer.send(CHUNKED, b"2\r\nok\r\n", END, request("GET", "/next"))
                first, rest = await peer.answer(), await peer.rest()
                # The answer was given while the head still promised to keep the connection, or not.
                assert first.fields["connection"] == "close"
            assert first.body == b"ok"
            return [call.head.path for call in desk.served], rest

    paths, rest = run(main())
    assert paths == (["/chunked", "/next"] if split else ["/chunked"])
    assert rest.startswith(b"HTTP/1.1 200 ") == split


def test_a_chunked_body_in_tiny_chunks_is_read(run: Run) -> None:
    """Framing that outweighs its content six times over is a body like any other."""

    async def main() -> bytes:
        async with listening(Desk()) as listener, connected(listener.port) as peer:
            peer.send(CHUNKED, b"1\r\na\r\n" * 200_000, END)
            return (await peer.answer()).body

    assert run(main()) == b"a" * 200_000


def test_empty_lines_before_a_request_are_let_go(run: Run) -> None:
    """Whole empty lines before a first line are no request and no fault (RFC 9112 section 2.2)."""

    async def main() -> list[int]:
        async with listening(Desk()) as listener, connected(listener.port) as peer:
            peer.send(b"\r\n\r\n", GET, b"\r\n", GET)
            return [(await peer.answer()).status for _ in range(2)]

    assert run(main()) == [200, 200]


def test_a_cut_answer_to_http_1_0_is_no_end(run: Run) -> None:
    """Where the end of the connection ends a body, an aborted one is reset, not ended."""

    async def main() -> None:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(request("GET", "/hold", version="1.0"))
            call = await desk.held.get()
            call.start(200, TEXT)
            call.write(b"a part")
            await peer.reader.readuntil(b"a part")
            call.abort()
            with pytest.raises(ConnectionResetError):
                await peer.rest()

    run(main())


def test_what_is_written_to_a_broken_connection_is_lost_quietly(run: Run) -> None:
    """Between a client's leaving and the news of it, writing neither fails nor is reported."""

    async def main() -> list[str]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD)
            call = await desk.held.get()
            watcher = Watcher(call)
            call.start(200, TEXT)
            call.write(b"a piece")
            peer.reset()
            while "gone" not in watcher.told:
                for _ in range(50):
                    call.write(bytes(4096))
                await asyncio.sleep(0)
            call.write(b"too late")
            call.end()
            return watcher.told

    assert run(main()).count("gone") == 1


def test_a_second_answer_is_a_fault(run: Run) -> None:
    """Who begins an answer twice, or writes before one was begun, learns it at once."""

    async def main() -> bytes:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD)
            call = await desk.held.get()
            with pytest.raises(RuntimeError):
                call.write(b"too early")
            call.start(200, TEXT)
            with pytest.raises(RuntimeError):
                call.start(200, TEXT)
            with pytest.raises(RuntimeError):
                call.respond(Response(200))
            call.write(b"once")
            call.end()
            call.respond(Response(500))  # … which is over: without effect
            return (await peer.answer()).body

    assert run(main()) == b"once"


def test_a_request_can_be_forgotten(run: Run) -> None:
    """An answer that takes long need not hold the request; what is needed of it stays."""

    async def main() -> tuple[bytes, dict[bytes, bytes], str, bytes]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(request(path="/hold", body=b"a secret"))
            call = await desk.held.get()
            call.forget_request()
            call.respond(Response(200, b"answer"))
            return call.body, call.head.fields, call.head.path, (await peer.answer()).body

    assert run(main()) == (b"", {}, "/hold", b"answer")


def test_a_client_of_a_call_that_fails_does_not_harm_the_connection(run: Run) -> None:
    """What gone(), pause() or resume() raises is reported without what was being handled."""

    class Faulty(Watcher):
        def gone(self) -> None:
            raise RuntimeError("a secret")

    async def main() -> None:
        desk = Desk()
        async with listening(desk) as listener:
            async with connected(listener.port) as peer:
                peer.send(HOLD)
                Faulty(await desk.held.get())
            await until(lambda: listener.connections == 0)
            assert listener.calls == 0

    run(main())
    (report,) = run.reports
    assert set(report) == {"message"}
    assert "Call.leave failed: RuntimeError at test_turns.py:" in report["message"]
    run.reports.clear()


def test_a_connection_that_has_ended_leaves_nothing_to_collect(run: Run) -> None:
    """Connections hold themselves by no cycle: with a lazy collector they would pile up."""

    async def main() -> tuple[int, int]:
        async with listening(Desk()) as listener:
            async with connected(listener.port) as peer:
                peer.send(request(body=b"body"), CHUNKED, END)
                await peer.answer()
                await peer.answer()
                alive = living(ServerConnection)
            async with connected(listener.port) as peer:
                peer.send(b"GET / HTTP/1.1\r\nHost")
                await until(lambda: listener.connections == 1)
            await exchanged(listener.port, b"\x00garbage")
            await until(lambda: listener.connections == 0)
            await asyncio.sleep(0.01)
            return alive, living(ServerConnection)

    gc.collect()
    gc.disable()
    try:
        assert run(main()) == (1, 0)
    finally:
        gc.enable()
