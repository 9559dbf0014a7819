"""Ports: opened, drained, closed; and the certificates that they speak with."""

import asyncio
import socket
import ssl
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest

from cheapgpu.wire import listener as listener_module
from cheapgpu.wire.listener import Listener, ListenError, server_tls
from cheapgpu.wire.message import Response
from tests.check.servers import CERTIFICATE, TLS
from tests.wire.conftest import Run
from tests.wire.peers import TEXT, Desk, Watcher, connected, exchanged, listening, request, until

GET = request("GET")
HOLD = request("GET", "/hold")
KEY = TLS / "key.pem"


def test_an_address_that_cannot_be_used_is_told(run: Run) -> None:
    """A port that is taken, and an address that is none, are errors that name both."""

    async def main() -> list[str]:
        messages = []
        with socket.create_server(("127.0.0.1", 0)) as taken:
            where: list[tuple[str, int]] = [
                taken.getsockname(),
                ("127.0.0.1", 1 << 17),
                ("192.0.2.1", 0),  # of nobody: RFC 5737
                (".".join(["a" * 60] * 5), 80),
                ("a..b", 80),
            ]
            for host, port in where:
                with pytest.raises(ListenError) as caught:
                    await Listener.open(Desk(), host, port)
                messages.append(str(caught.value))
                assert messages[-1].startswith(f"{host} port {port}: ")
        return messages

    assert all(message.endswith("; give another address") for message in run(main()))


def test_a_listener_counts(run: Run) -> None:
    """Its port is the one that was bound; connections and calls are those of the moment."""

    async def main() -> list[tuple[int, int]]:
        desk = Desk()
        counts = []
        async with listening(desk) as listener:
            assert listener.port > 0
            async with connected(listener.port) as one, connected(listener.port) as two:
                one.send(HOLD)
                two.send(GET)
                call = await desk.held.get()
                await two.answer()
                counts.append((listener.connections, listener.calls))
                call.respond(Response(200))
                counts.append((listener.connections, listener.calls))
            await until(lambda: listener.connections == 0)
        return counts

    assert run(main()) == [(2, 1), (2, 0)]


def test_draining_lets_answers_end(run: Run) -> None:
    """Nothing new is taken, idle connections are closed, and answers in progress are the last."""

    async def main() -> tuple[bool, list[Any]]:
        desk = Desk()
        async with (
            listening(desk) as listener,
            connected(listener.port) as waiting,
            connected(listener.port) as begun,
            connected(listener.port) as idle,
            connected(listener.port) as fresh,
        ):
            idle.send(GET)
            await idle.answer()
            waiting.send(HOLD)
            first = await desk.held.get()
            begun.send(HOLD, GET)
            second = await desk.held.get()
            second.start(200, TEXT)
            second.write(b"piece")
            draining = asyncio.create_task(listener.drain(10))
            assert await idle.closed()
            assert await fresh.closed()
            with pytest.raises(ConnectionRefusedError):
                await exchanged(listener.port)
            first.respond(Response(200, b"last", TEXT))
            answer = await waiting.answer()
            assert await waiting.closed()
            assert not draining.done()
            second.end()
            piece = await begun.answer()
            assert await begun.closed()
            results = [answer.fields.get("connection"), answer.body, piece.body, len(desk.served)]
            return await draining, results

    # Idle's, and two that were held; what waited behind one of them is not begun.
    assert run(main()) == (True, ["close", b"last", b"piece", 3])


def test_an_answer_that_begins_while_draining_says_close(run: Run) -> None:
    """The head of an answer in pieces says that it is the last, if it has not left."""

    async def main() -> list[Any]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD)
            call = await desk.held.get()
            draining = asyncio.create_task(listener.drain(10))
            await asyncio.sleep(0)
            call.start(200, TEXT)
            call.write(b"piece")
            call.end()
            answer = await peer.answer()
            return [answer.fields["connection"], answer.body, await draining]

    assert run(main()) == ["close", b"piece", True]


@pytest.mark.parametrize("half", [HOLD[:-2], request(body=b"body")[:-1]], ids=["head", "body"])
def test_half_a_request_is_told_of_the_drain(run: Run, half: bytes) -> None:
    """A client in the middle of a request gets 503, instead of an end without a word."""

    async def main() -> tuple[int, bool]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(GET)
            await peer.answer()
            peer.send(half)
            await until(lambda: len(desk.admitted) == 2 or half == HOLD[:-2])
            await asyncio.sleep(0.01)
            drained = await listener.drain(10)
            return (await peer.answer()).status, drained

    assert run(main()) == (503, True)


def test_draining_has_an_end(run: Run) -> None:
    """An answer that does not end in time is not waited for, and its end later is no fault."""

    async def main() -> tuple[bool, bool, bytes]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD)
            call = await desk.held.get()
            first = await listener.drain(0.02)
            second = await listener.drain(0)
            call.respond(Response(200, b"late", TEXT))
            assert await listener.drain(0)
            return first, second, (await peer.answer()).body

    assert run(main()) == (False, False, b"late")


@pytest.mark.parametrize("leave", ["closes", "aborts"])
def test_a_client_that_leaves_does_not_hold_the_drain(run: Run, leave: str) -> None:
    """An answer whose client has left, or that is given up, is not waited for."""

    async def main() -> bool:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(HOLD, GET)
            call = await desk.held.get()
            draining = asyncio.create_task(listener.drain(10))
            await asyncio.sleep(0)
            if leave == "closes":
                peer.writer.close()
            else:
                call.abort()
            return await draining

    assert run(main())


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_closing_tells_who_answers_and_leaves_nothing(run: Run, *, secure: bool) -> None:
    """Answers in progress are cut, and who gives them is told; no connection is left open."""

    async def main() -> tuple[list[str], bool, int]:
        desk = Desk()
        async with (
            listening(desk, secure=secure) as listener,
            connected(listener.port, secure=secure) as peer,
            connected(listener.port, secure=secure) as idle,
        ):
            peer.send(HOLD, GET)
            watcher = Watcher(await desk.held.get())
            closing = asyncio.create_task(listener.close())
            assert await idle.closed()
            closed = await peer.closed()
            await closing
            await listener.close()
            return watcher.told, closed, listener.connections

    assert run(main()) == (["gone"], True, 0)


def test_what_was_written_leaves_before_the_end(run: Run) -> None:
    """An answer that is over, but not yet read, arrives whole although the listener is closed."""

    async def main() -> int:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port, window=4096) as peer:
            peer.send(HOLD)
            (await desk.held.get()).respond(Response(200, bytes(16 << 20), TEXT))
            reading = asyncio.create_task(peer.answer())
            await listener.close()
            return len((await reading).body)

    assert run(main()) == 16 << 20


def test_a_client_that_does_not_read_does_not_hold_the_end(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing waits for those who read, a moment, and cuts the others."""
    monkeypatch.setattr(listener_module, "LINGER_SECONDS", 0.05)

    async def main() -> int:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port, window=4096) as peer:
            peer.send(HOLD)
            (await desk.held.get()).respond(Response(200, bytes(16 << 20), TEXT))
            await listener.close()
            return listener.connections

    assert run(main()) == 0


def test_a_handshake_has_its_time(run: Run) -> None:
    """A client that connects to a port with TLS and says nothing is closed."""

    async def main() -> bool:
        async with (
            listening(Desk(), secure=True, head_seconds=0.1) as listener,
            connected(listener.port) as peer,
        ):
            return await peer.closed()

    assert run(main())


def test_a_client_without_tls_is_closed(run: Run) -> None:
    """Plain HTTP on a port with TLS is no request."""

    async def main() -> tuple[bytes, Desk]:
        desk = Desk()
        async with listening(desk, secure=True) as listener, connected(listener.port) as peer:
            peer.send(GET)
            try:
                return await peer.rest(), desk
            except ConnectionError:
                return b"", desk

    received, desk = run(main())
    assert b"HTTP" not in received
    assert desk.admitted == []


def test_old_tls_is_not_spoken() -> None:
    """Nothing older than TLS 1.2 is spoken."""
    assert server_tls(CERTIFICATE, KEY).minimum_version is ssl.TLSVersion.TLSv1_2


def test_files_that_are_no_certificate_are_told(tmp_path: Path) -> None:
    """A certificate or key that is missing, wrong, or another's is an error that names the file."""
    missing, wrong = tmp_path / "missing.pem", tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    for cert, key in ((missing, KEY), (CERTIFICATE, missing), (tmp_path, KEY)):
        with pytest.raises(ListenError, match=r"the TLS (certificate|key) .*: "):
            server_tls(cert, key)
    for cert, key, what in (
        (wrong, KEY, "the TLS certificate .*wrong.pem is none"),
        (CERTIFICATE, wrong, "the TLS key .*wrong.pem is none"),
        (KEY, CERTIFICATE, "the TLS certificate .*key.pem is none"),
    ):
        with pytest.raises(ListenError, match=what):
            server_tls(cert, key)


def test_a_key_with_a_password_asks_nobody(tmp_path: Path) -> None:
    """An encrypted key is an error: nobody sits at a server's terminal."""
    encrypted = tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "pkey", "-in", KEY, "-aes256", "-passout", "pass:word", "-out", encrypted],
        check=True,
        timeout=20,
    )
    with pytest.raises(ListenError, match=r"the TLS key .*key.pem is encrypted"):
        server_tls(CERTIFICATE, encrypted)


def test_a_listener_that_served_leaves_no_warning(run: Run) -> None:
    """Opened, used and closed, a listener leaves nothing behind that would warn."""

    async def main() -> None:
        async with listening(Desk()) as listener, connected(listener.port) as peer:
            peer.send(GET)
            await peer.answer()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(main())
    assert caught == []
