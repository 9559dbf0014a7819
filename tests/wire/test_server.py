"""Requests and answers over real sockets: turns, clocks, backpressure, and clients that leave."""

import asyncio
import itertools
import socket
from collections.abc import Callable
from typing import Any

import pytest

from cheapgpu.wire import server_connection
from cheapgpu.wire.message import RequestHead, Response
from cheapgpu.wire.server import Call
from cheapgpu.wire.server_connection import ServerConnection
from tests.wire.conftest import Run
from tests.wire.peers import (
    TEXT,
    Desk,
    Peer,
    Watcher,
    connected,
    exchanged,
    listening,
    request,
    until,
)

GET = request("GET")
HOLD = request("GET", "/hold")
EXPECT = b"Expect: 100-continue\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"Connection: close\r\n"
IN_CHUNKS = (
    b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b'5;name="value"\r\nin pi\r\n03\r\nece\r\n1\r\ns\r\n0\r\nTrailer: x\r\n\r\n'
)


# Requests.


def test_a_connection_is_kept(run: Run) -> None:
    """One connection carries one request after the other, whatever their bodies are framed by."""

    async def main() -> list[bytes]:
        async with listening(Desk()) as listener, connected(listener.port) as peer:
            bodies = []
            for data in (
                GET,
                request(body=b"with a length"),
                IN_CHUNKS,
                b"\r\n" + GET,
            ):
                peer.send(data)
                answer = await peer.answer()
                assert answer.status == 200
                assert "connection" not in answer.fields
                bodies.append(answer.body)
            assert listener.connections == 1
            return bodies

    assert run(main()) == [b"ok", b"with a length", b"in pieces", b"ok"]


def test_a_request_may_come_byte_by_byte(run: Run) -> None:
    """Where the reads end makes no difference to what is read."""

    async def main() -> Call:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            lines = b"X: a\r\nx: b \r\nEmpty:\r\n"
            for byte in request(path="/a?b=/c", body=b"body", lines=lines):
                peer.send(bytes([byte]))
                await asyncio.sleep(0)
            assert (await peer.answer()).body == b"body"
        return desk.served[0]

    call = run(main())
    assert (call.head.method, call.head.target, call.head.path) == ("POST", "/a?b=/c", "/a")
    assert call.head.fields[b"x"] == b"a, b"
    assert call.head.fields[b"empty"] == b""


def test_pipelined_requests_are_answered_in_their_order(run: Run) -> None:
    """Requests that come in one read are answered one after the other, and none is lost."""

    async def main() -> tuple[list[bytes], Desk]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            bodies = [b"%d" % number for number in range(20)]
            peer.send(*(request(body=body) for body in bodies))
            assert [(await peer.answer()).body for _ in bodies] == bodies
            # … and behind one whose answer takes its time.
            peer.send(HOLD, *(request(body=body) for body in bodies), b"POST /last HT")
            call = await desk.held.get()
            assert listener.calls == 1
            assert [one.head.path for one in desk.served].count("/hold") == 1
            call.respond(Response(200, b"held", TEXT))
            answers = [(await peer.answer()).body for _ in range(21)]
            peer.send(b"TP/1.1\r\nHost: here\r\n\r\n")
            await peer.answer()
        assert answers == [b"held", *bodies]
        return answers, desk

    _, desk = run(main())
    assert desk.served[-1].head.path == "/last"


def test_what_waits_behind_a_request_is_bounded(run: Run) -> None:
    """A client that sends on and on during an answer is not read from, and loses nothing by it."""

    async def main() -> tuple[int, int]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD)
            call = await desk.held.get()
            sent = 0
            large = request(body=bytes(300_000))
            while peer.writer.transport.get_write_buffer_size() < 1 << 20:  # the system is full
                peer.send(large)
                sent += 1
                await asyncio.sleep(0.001)
            waiting = len(desk.admitted)
            call.respond(Response(200, b"", TEXT))
            for _ in range(sent + 1):
                assert (await peer.answer()).status == 200
            return sent, waiting

    sent, waiting = run(main())
    assert waiting < 10 < sent


def test_no_request_is_looked_at_before_its_turn(run: Run) -> None:
    """However many come in one read, none is admitted while one is answered, and none is lost."""

    async def main() -> list[int]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD, GET * 1000)
            call = await desk.held.get()
            await asyncio.sleep(0.02)
            assert len(desk.admitted) == 1
            call.respond(Response(200))
            return [(await peer.answer()).status for _ in range(1001)]

    assert run(main()) == [200] * 1001


def test_many_waiting_requests_do_not_exhaust_the_stack(run: Run) -> None:
    """However many answers follow each other at once, each is given."""

    async def main() -> int:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD, GET * 60)
            (await desk.held.get()).respond(Response(200))
            depths = set()
            for _ in range(61):
                depths.add((await peer.answer()).status)
            assert depths == {200}
            peer.send(GET * 5000)
            for _ in range(5000):
                await peer.answer()
        return len(desk.served)

    assert run(main()) == 5061


# Expect: 100-continue.


def test_the_body_is_asked_for_once_the_head_is_admitted(run: Run) -> None:
    """`100 Continue` comes after admit() has returned None, and before any body."""

    async def main() -> bytes:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            head, _, body = request(body=b"body", lines=EXPECT).partition(b"\r\n\r\n")
            peer.send(head)
            assert desk.admitted == []
            peer.send(b"\r\n\r\n")
            assert await peer.reader.readexactly(len(CONTINUE)) == CONTINUE
            assert len(desk.admitted) == 1
            peer.send(body)
            return (await peer.answer()).body

    assert run(main()) == b"body"


def test_a_body_that_is_not_admitted_is_not_asked_for(run: Run) -> None:
    """The refusal comes at once in place of `100 Continue`, and the connection is closed."""

    async def main() -> tuple[bytes, Desk]:
        desk = Desk()
        async with listening(desk) as listener:
            head, _, _ = request(path="/no", body=b"body", lines=EXPECT).partition(b"\r\n\r\n")
            return await exchanged(listener.port, head, b"\r\n\r\n"), desk

    answer, desk = run(main())
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert answer.endswith(b"\r\nconnection: close\r\n\r\nrefused")
    assert desk.served == []


@pytest.mark.parametrize(
    "data",
    [
        request(lines=EXPECT),
        request(body=b"body", lines=EXPECT),
        request(body=b"body", lines=EXPECT, version="1.0"),
        request(body=b"body", lines=EXPECT, version="1.0")[:-4],
    ],
    ids=["no-body", "body-is-there", "1.0", "1.0-without-body"],
)
def test_nothing_is_asked_for_in_vain(run: Run, data: bytes) -> None:
    """There is no `100 Continue` without a body, with one that is there, or in HTTP/1.0."""

    async def main() -> bytes:
        async with listening(Desk(), body_seconds=0.1) as listener, connected(listener.port) as one:
            one.send(data)
            return await one.reader.readexactly(12)

    assert run(main()) in (b"HTTP/1.1 200", b"HTTP/1.1 408")


def test_a_waiting_body_is_asked_for_in_its_turn(run: Run) -> None:
    """`100 Continue` never stands inside another answer, and is not forgotten after it."""

    async def main() -> bytes:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD, request(body=b"body", lines=EXPECT)[:-4])
            call = await desk.held.get()
            call.start(200, TEXT)
            call.write(b"piece")
            call.end()
            assert (await peer.answer()).body == b"piece"
            assert await peer.reader.readexactly(len(CONTINUE)) == CONTINUE
            peer.send(b"body")
            return (await peer.answer()).body

    assert run(main()) == b"body"


def test_a_refusal_behind_an_answer_waits_for_it(run: Run) -> None:
    """A pipelined request that is refused before its body leaves what came before it intact."""

    async def main() -> list[int]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            refused = request(path="/no", body=b"body", lines=EXPECT)[:-4]
            peer.send(HOLD, GET, refused)
            call = await desk.held.get()
            call.respond(Response(200))
            statuses = [(await peer.answer()).status for _ in range(3)]
            assert await peer.closed()
            return statuses

    assert run(main()) == [200, 200, 401]


def test_a_refused_body_is_swallowed(run: Run) -> None:
    """Refused by its head, a request is read to its end, answered, and the connection kept."""

    async def main() -> Desk:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            head, _, body = request(path="/no", body=bytes(900_000)).partition(b"\r\n\r\n")
            peer.send(head, b"\r\n\r\n")
            await until(lambda: desk.admitted)
            for at in range(0, len(body), 50_000):
                peer.send(body[at : at + 50_000])
                await peer.writer.drain()
            assert (await peer.answer())[::2] == (401, b"refused")
            peer.send(GET)
            assert (await peer.answer()).status == 200
        return desk

    assert [call.head.path for call in run(main()).served] == ["/"]


# Answers.


def test_head_and_first_write_leave_together(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is one write, and an answer in pieces one for each of them and one for its end."""
    writes: list[bytes] = []
    write = ServerConnection.write

    def noted(connection: ServerConnection, data: bytes) -> None:
        writes.append(data)
        write(connection, data)

    monkeypatch.setattr(ServerConnection, "write", noted)

    async def main() -> None:
        async with listening(Desk()) as listener, connected(listener.port) as peer:
            peer.send(GET, request("GET", "/pieces"))
            await peer.answer()
            assert (await peer.answer()).body == b"onetwo"

    run(main())
    whole, first, second, end = writes
    assert whole.endswith(b"\r\n\r\nok")
    assert first.endswith(b"\r\n\r\n3\r\none\r\n")
    assert (second, end) == (b"3\r\ntwo\r\n", b"0\r\n\r\n")


def test_an_answer_without_pieces_is_an_answer(run: Run) -> None:
    """start() and end() alone give a head and an empty body; end() alone is no success."""

    async def main() -> tuple[bytes, bool]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD)
            call = await desk.held.get()
            call.start(200, TEXT)
            call.end()
            answer = await peer.answer()
            peer.send(HOLD)
            (await desk.held.get()).end()
            return answer.body, await peer.closed()

    assert run(main()) == (b"", True)


def test_end_can_close(run: Run) -> None:
    """An answer that ends with `close` is whole, and the last of its connection."""

    async def main() -> tuple[bytes, bytes, int]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD, GET)
            call = await desk.held.get()
            call.start(200, TEXT)
            call.write(b"piece")
            call.end(close=True)
            return (await peer.answer()).body, await peer.rest(), len(desk.served)

    assert run(main()) == (b"piece", b"", 1)


@pytest.mark.parametrize("path", ["/", "/no", "/pieces", "/fails"])
def test_head_is_answered_without_a_body(run: Run, path: str) -> None:
    """The answer to HEAD is the head alone, whichever way it is answered."""

    async def main() -> bytes:
        async with listening(Desk()) as listener:
            return await exchanged(listener.port, request("HEAD", path, lines=CLOSE))

    answer = run(main())
    run.reports.clear()
    assert answer.endswith(b"\r\n\r\n")
    assert answer.count(b"\r\n\r\n") == 1


def test_a_refused_head_request_gets_no_body(run: Run) -> None:
    """Not even a refusal of the message itself gives HEAD a body."""

    async def main() -> bytes:
        async with listening(Desk()) as listener:
            return await exchanged(listener.port, b"HEAD / HTTP/1.1\r\n\r\n")

    answer = run(main())
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.endswith(b"\r\n\r\n")


def test_no_content_has_no_length(run: Run) -> None:
    """204 carries neither length nor body (RFC 9110 section 8.6), and the connection is kept."""

    async def main() -> dict[str, str]:
        async with listening(Desk()) as listener, connected(listener.port) as peer:
            peer.send(request("GET", "/nothing"), GET)
            fields = (await peer.answer(bare=True)).fields
            assert (await peer.answer()).body == b"ok"
            return fields

    assert "content-length" not in run(main())


@pytest.mark.parametrize("path", ["/", "/pieces"])
@pytest.mark.parametrize("lines", [b"", b"Connection: keep-alive\r\n"])
def test_http_1_0_is_answered_and_closed(run: Run, path: str, lines: bytes) -> None:
    """A client of HTTP/1.0 gets its answer without chunks, ended by the end of the connection."""

    async def main() -> bytes:
        async with listening(Desk()) as listener:
            return await exchanged(listener.port, request("GET", path, b"", lines, "1.0"))

    head, _, body = run(main()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"transfer-encoding" not in head
    assert b"\r\nconnection: close" in head
    assert body == (b"ok" if path == "/" else b"onetwo")


def test_each_request_is_answered_in_its_own_version(run: Run) -> None:
    """A request that waits does not change how the one before it is answered."""

    async def main() -> tuple[Any, ...]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD, request("GET", "/pieces", version="1.0"))
            call = await desk.held.get()
            call.start(200, TEXT)
            call.write(b"piece")
            call.end()
            first, second = await peer.answer(), await peer.answer()
        return first.fields.get("transfer-encoding"), first.fields.get("connection"), second.body

    assert run(main()) == ("chunked", None, b"onetwo")


# Faults.


@pytest.mark.parametrize("path", ["/fails", "/admit-fails"])
def test_a_fault_of_the_service_is_an_answer(run: Run, path: str) -> None:
    """A service that raises gives 500, a closed connection, and a report without the request."""

    async def main() -> bytes:
        async with listening(Desk()) as listener:
            asked = request(path=path, body=b"a secret", lines=b"X: hidden\r\n")
            return await exchanged(listener.port, asked, GET)

    answer = run(main())
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert answer.endswith(b"\r\nconnection: close\r\n\r\na fault of this server")
    (report,) = run.reports
    run.reports.clear()
    assert set(report) == {"message"}
    what = "admit" if "admit" in path else "serve"
    assert report["message"].startswith(f"Desk.{what} failed: RuntimeError at peers.py:")
    assert "a fault" not in report["message"]


def test_a_fault_inside_an_answer_cuts_it(run: Run) -> None:
    """Once a head has left, a fault cuts the connection: no second head, and no false end."""

    async def main() -> bytes:
        async with listening(Desk()) as listener, connected(listener.port) as peer:
            peer.send(request("GET", "/fails-later"))
            received = b""
            try:
                while data := await peer.reader.read(1000):
                    received += data
            except ConnectionError:
                pass
            return received

    received = run(main())
    assert len(run.reports) == 1
    run.reports.clear()
    assert received.count(b"HTTP/1.1") <= 1
    assert not received.endswith(b"0\r\n\r\n")


class FailingDesk(Desk):
    """A service that cannot even refuse."""

    def refuse(self, status: int, reason: str) -> Response:
        """Fail."""
        raise RuntimeError(f"{status} {reason}")


def test_a_fault_in_a_refusal_is_still_a_refusal(run: Run) -> None:
    """A service whose refuse() raises leaves no client waiting."""

    async def main() -> bytes:
        async with listening(FailingDesk()) as listener:
            return await exchanged(listener.port, b"\x00")

    assert run(main()).startswith(b"HTTP/1.1 400 ")
    (report,) = run.reports
    assert report["message"].startswith("FailingDesk.refuse failed: RuntimeError at ")
    run.reports.clear()


# Clocks.


@pytest.mark.parametrize(
    "sent",
    [
        b"G",
        GET[:-2],
        GET[:-2] + b"X: a",
        request(body=b"body")[:-1],
        request(path="/hello", body=b"body", lines=b"Expect: 100-continue\r\n")[:-4],
        b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n1",
    ],
    ids=["method", "head", "field", "body", "awaited-body", "chunk"],
)
@pytest.mark.parametrize("before", [b"", GET, HOLD], ids=["first", "kept", "pipelined"])
def test_a_slow_request_is_refused(run: Run, sent: bytes, before: bytes) -> None:
    """A request that does not come in its time gets 408, on a new connection as on a kept one."""

    async def main() -> int:
        desk = Desk()
        limits: dict[str, Any] = {"head_seconds": 0.1, "body_seconds": 0.1}
        async with listening(desk, **limits) as listener, connected(listener.port) as peer:
            if before == HOLD:
                peer.send(before, sent)
                (await desk.held.get()).respond(Response(200))
                await peer.answer()
            elif before:
                peer.send(before)
                await peer.answer()
                peer.send(sent)
            else:
                peer.send(sent)
            status = (await peer.answer()).status
            if status == 100:
                status = (await peer.answer()).status
            assert await peer.closed()
            return status

    assert run(main()) == 408


def test_a_trickle_does_not_extend_the_time(run: Run) -> None:
    """A head that comes byte by byte for ever is refused all the same."""

    async def main() -> int:
        async with (
            listening(Desk(), head_seconds=0.2) as listener,
            connected(listener.port) as peer,
        ):
            peer.send(GET[:-2], b"X: ")
            answer = asyncio.create_task(peer.answer())
            while not answer.done():
                peer.send(b"a")
                await asyncio.sleep(0.01)
            return (await answer).status

    assert run(main()) == 408


def test_an_answer_may_take_longer_than_any_request(run: Run) -> None:
    """No clock of the client's runs while its request is answered, whatever else it sends."""

    async def main() -> int:
        desk = Desk()
        limits: dict[str, Any] = dict.fromkeys(
            ("head_seconds", "body_seconds", "idle_seconds"), 0.05
        )
        async with listening(desk, **limits) as listener, connected(listener.port) as peer:
            peer.send(HOLD, b"GET /")
            call = await desk.held.get()
            ticks = itertools.count()
            sweep = listener.sweep

            def counted(now: float) -> None:
                next(ticks)
                sweep(now)

            listener.sweep = counted  # type: ignore[method-assign]
            await until(lambda: next(ticks) > 50)
            call.respond(Response(200))
            return (await peer.answer()).status

    assert run(main()) == 200


@pytest.mark.parametrize("before", [b"", b"\r\n", GET], ids=["nothing", "empty-line", "kept"])
def test_an_idle_connection_is_closed(run: Run, before: bytes) -> None:
    """A client that asks nothing is told nothing, and its connection closed."""

    async def main() -> bytes:
        limits: dict[str, Any] = {"head_seconds": 0.1, "idle_seconds": 0.1}
        async with listening(Desk(), **limits) as listener, connected(listener.port) as peer:
            peer.send(before)
            if before == GET:
                await peer.answer()
            return await peer.rest()

    assert run(main()) == b""


def test_a_client_that_never_closes_is_closed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a last answer the client has a moment to read it, and no more."""
    monkeypatch.setattr(server_connection, "LINGER_SECONDS", 0.05)

    async def main() -> None:
        limits: dict[str, Any] = {"head_seconds": 0.05, "stall_seconds": 0.05}
        async with listening(Desk(), **limits) as listener, connected(listener.port) as peer:
            peer.send(request("GET", lines=CLOSE))
            await peer.rest()
            await until(lambda: listener.connections == 0)

    run(main())


def test_too_many_connections_are_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit clients are told so; far beyond it they are cut; room made is used."""
    monkeypatch.setattr(server_connection, "_TOLD", 2)

    async def main() -> tuple[bytes, bool, int]:
        async with listening(Desk(), connections=1) as listener:
            async with connected(listener.port) as first:
                first.send(GET)
                await first.answer()
                refused = await exchanged(listener.port)
                async with connected(listener.port), connected(listener.port):
                    await until(lambda: listener.connections == 3)
                    async with connected(listener.port) as cut:
                        is_cut = await cut.closed()
            await until(lambda: listener.connections == 0)
            async with connected(listener.port) as last:
                last.send(GET)
                return refused, is_cut, (await last.answer()).status

    refused, is_cut, status = run(main())
    assert refused.startswith(b"HTTP/1.1 503 ")
    assert (is_cut, status) == (True, 200)


# Clients that leave, and clients that read slowly.


def shut(peer: Peer) -> None:
    """Say nothing more, but keep listening."""
    peer.writer.write_eof()


LEAVING: dict[str, Callable[[Peer], None]] = {
    "closes": lambda peer: peer.writer.close(),
    "resets": lambda peer: peer.reset(),
    "half-closes": shut,
}


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
@pytest.mark.parametrize("how", ["waiting", "begun", "with-more-behind", "stalled"])
def test_a_client_that_leaves_is_noticed_once(
    run: Run, leave: Callable[[Peer], None], how: str
) -> None:
    """Who answers is told at once, and once; all that is done to the call then does nothing."""

    async def main() -> tuple[list[str], int, int]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port, window=4096) as peer:
            peer.send(HOLD, request("GET", "/behind") if how == "with-more-behind" else b"")
            call = await desk.held.get()
            watcher = Watcher(call)
            if how != "waiting":
                call.start(200, TEXT)
                call.write(b"piece")
            while how == "stalled" and not call.paused:
                call.write(bytes(1 << 16))
                await asyncio.sleep(0)
            leave(peer)
            await until(lambda: "gone" in watcher.told)
            call.start(200, TEXT)
            call.write(b"piece")
            call.respond(Response(200))
            call.end()
            call.abort()
            call.leave()
            assert not call.paused
            await until(lambda: listener.connections == 0)
            return watcher.told, listener.calls, len(desk.served)

    told, calls, served = run(main())
    assert [one for one in told if one != "pause"] == ["gone"]
    assert (calls, served) == (0, 1)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_what_was_asked_before_the_half_close_is_answered(run: Run, *, secure: bool) -> None:
    """A client that asks, and says that this was all, reads the answer that is there at once."""

    async def main() -> bytes:
        desk = Desk()
        async with (
            listening(desk, secure=secure) as listener,
            connected(listener.port, secure=secure) as peer,
        ):
            peer.send(request("GET", "/large", lines=CLOSE))
            if not secure:
                peer.writer.write_eof()
            return await peer.rest()

    assert len(run(main())) > 1 << 20


def test_a_client_over_tls_that_leaves_is_noticed(run: Run) -> None:
    """The end of TLS, like the end of the connection under it, is the client's leaving."""

    async def main() -> list[list[str]]:
        desk = Desk()
        told = []
        async with listening(desk, secure=True) as listener:
            for leave in (LEAVING["closes"], LEAVING["resets"]):
                async with connected(listener.port, secure=True) as peer:
                    peer.send(HOLD)
                    watcher = Watcher(await desk.held.get())
                    leave(peer)
                    await until(lambda: watcher.told)  # noqa: B023 -- awaited here
                    told.append(watcher.told)
        return told

    assert run(main()) == [["gone"], ["gone"]]


def test_gone_is_not_said_after_the_end(run: Run) -> None:
    """A client that leaves after its answer is no affair of who gave it."""

    async def main() -> list[str]:
        desk = Desk()
        async with listening(desk) as listener:
            async with connected(listener.port) as peer:
                peer.send(HOLD)
                call = await desk.held.get()
                watcher = Watcher(call)
                call.respond(Response(200))
                await peer.answer()
            await until(lambda: listener.connections == 0)
            return watcher.told

    assert run(main()) == []


def test_abort_cuts_the_answer(run: Run) -> None:
    """An aborted answer has no end that could be taken for one, and nothing follows it."""

    async def main() -> tuple[bool, list[str], int]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD, GET)
            call = await desk.held.get()
            watcher = Watcher(call)
            call.start(200, TEXT)
            call.write(b"piece")
            await peer.reader.readuntil(b"piece\r\n")
            call.abort()
            closed = await peer.closed()
            return closed, watcher.told, len(desk.served)

    assert run(main()) == (True, [], 1)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_a_slow_reader_pauses_who_answers(run: Run, *, secure: bool) -> None:
    """pause() comes before much is buffered, resume() once the client has read, and all arrives."""

    async def main() -> tuple[list[str], int, int]:
        desk = Desk()
        async with (
            listening(desk, secure=secure) as listener,
            connected(listener.port, secure=secure, window=4096) as peer,
        ):
            peer.send(HOLD)
            call = await desk.held.get()
            watcher = Watcher(call)
            call.start(200, TEXT)
            written = 0
            while not call.paused:
                call.write(bytes(10_000))
                written += 10_000
                await asyncio.sleep(0)
            answer = asyncio.create_task(peer.answer())
            await until(lambda: not call.paused)
            told = list(watcher.told)
            call.end()
            return told, written, len((await answer).body)

    told, written, received = run(main())
    assert told == ["pause", "resume"]
    assert received == written < 20_000_000  # what the system holds, and little of ours


def test_answers_that_nobody_reads_are_not_piled_up(run: Run) -> None:
    """No request is served while the answers before it wait to be read; all are served in time."""

    async def main() -> list[bool]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port, window=4096) as peer:
            for _ in range(40):
                peer.send(request("GET", "/large"))
                await asyncio.sleep(0)
            await until(lambda: len(desk.served) > 1)
            for _ in range(100):
                await asyncio.sleep(0)
            served = len(desk.served)
            assert served < 30
            for _ in range(40):
                assert len((await peer.answer()).body) == 1 << 20
        return desk.paused

    assert run(main()) == [False] * 40


@pytest.mark.parametrize("ended", [False, True], ids=["in-progress", "written"])
def test_a_stalled_reader_is_cut(run: Run, *, ended: bool) -> None:
    """A client that takes nothing of what is written is cut, whether the answer goes on or not."""

    async def main() -> list[str]:
        desk = Desk()
        limits: dict[str, Any] = {"stall_seconds": 0.1, "head_seconds": 0.1, "idle_seconds": 60}
        async with (
            listening(desk, **limits) as listener,
            connected(listener.port, window=4096) as p,
        ):
            p.send(HOLD)
            call = await desk.held.get()
            watcher = Watcher(call)
            call.start(200, TEXT)
            while not call.paused:
                call.write(bytes(1 << 16))
                await asyncio.sleep(0)
            if ended:
                call.end()
            await until(lambda: listener.connections == 0)
            return watcher.told

    assert run(main()) == (["pause"] if ended else ["pause", "gone"])


def test_a_reader_that_takes_its_time_is_not_cut(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that has taken something in a while may take another; one that has not is cut."""
    transports: list[asyncio.Transport] = []
    made = ServerConnection.connection_made

    def noted(connection: ServerConnection, transport: asyncio.Transport) -> None:
        transports.append(transport)
        made(connection, transport)

    monkeypatch.setattr(ServerConnection, "connection_made", noted)

    async def main() -> None:
        desk = Desk()
        async with (
            listening(desk, stall_seconds=1000) as listener,
            connected(listener.port, window=4096) as peer,
        ):
            peer.send(HOLD)
            call = await desk.held.get()
            call.respond(Response(200, bytes(16 << 20)))
            await asyncio.sleep(0)
            now = asyncio.get_running_loop().time()
            kept = []
            for sweep in range(1, 4):
                before = transports[0].get_write_buffer_size()
                while transports[0].get_write_buffer_size() == before:
                    await peer.reader.read(1 << 16)
                listener.sweep(now + 1002 * sweep)
                await asyncio.sleep(0)
                kept.append(listener.connections)
            assert kept == [1, 1, 1]
            listener.sweep(now + 1002 * 4)
            await until(lambda: listener.connections == 0)

    run(main())


def test_a_service_sees_who_asks(run: Run) -> None:
    """A call knows its client's address, and the time of its head by the loop's clock."""

    async def main() -> tuple[str, bool]:
        desk = Desk()
        before = asyncio.get_running_loop().time()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD)
            call = await desk.held.get()
            return call.peer, before <= call.received <= asyncio.get_running_loop().time()

    assert run(main()) == ("127.0.0.1", True)


def test_a_call_without_a_client_to_tell_is_answered(run: Run) -> None:
    """Nobody need be told of pauses or of leaving."""

    async def main() -> int:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port, window=4096) as peer:
            peer.send(HOLD)
            call = await desk.held.get()
            call.start(200, TEXT)
            while not call.paused:
                call.write(bytes(1 << 16))
                await asyncio.sleep(0)
            call.end()
            await peer.answer()
            peer.send(HOLD)
            await desk.held.get()
            peer.reset()
            await until(lambda: listener.connections == 0)
            return listener.calls

    assert run(main()) == 0


def test_the_principal_found_at_admission_is_kept(run: Run) -> None:
    """What admit() writes into the head is there when the request is served."""

    class Porter(Desk):
        def admit(self, head: RequestHead) -> Response | None:
            head.principal = "somebody"
            return super().admit(head)

    async def main() -> Desk:
        desk = Porter()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(request(body=b"body"))
            await peer.answer()
        return desk

    assert run(main()).served[0].head.principal == "somebody"


def test_a_port_scan_leaves_nothing(run: Run) -> None:
    """A connection that is opened and closed, or broken, at once is forgotten."""

    async def main() -> int:
        async with listening(Desk()) as listener:
            for linger in (b"\0" * 8, b"\1\0\0\0" + b"\0" * 4):
                with socket.create_connection(("127.0.0.1", listener.port)) as one:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            async with connected(listener.port) as peer:
                peer.send(GET)
                await peer.answer()
            await until(lambda: listener.connections == 0)
            return listener.calls

    assert run(main()) == 0
