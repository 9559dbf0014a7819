"""What is no request: refused, its connection closed, and nothing after it read."""

import asyncio
from typing import Any

import pytest

from tests.wire.conftest import Run
from tests.wire.peers import Desk, connected, exchanged, listening, request

HOST = b"Host: here\r\n"
POST = b"POST / HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
#: What a reader who was misled would take for the next request.
NEXT = request("GET", "/second")

SMUGGLED: dict[str, tuple[bytes, int]] = {
    # Two lengths.
    "length-and-coding": (
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + END,
        400,
    ),
    "coding-and-length": (
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + END,
        400,
    ),
    "two-lengths": (POST + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n", 400),
    "same-length-twice": (POST + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 400),
    "length-list": (POST + b"Content-Length: 0, 0\r\n\r\n", 400),
    "length-signed": (POST + b"Content-Length: +0\r\n\r\n", 400),
    "length-negative": (POST + b"Content-Length: -1\r\n\r\n", 400),
    "length-hex": (POST + b"Content-Length: 0x0\r\n\r\n", 400),
    "length-underscore": (POST + b"Content-Length: 0_0\r\n\r\n", 400),
    "length-empty": (POST + b"Content-Length: \r\n\r\n", 400),
    "length-of-zeros": (POST + b"Content-Length: " + b"0" * 5000 + b"\r\n\r\n", 400),
    "length-huge": (POST + b"Content-Length: 18446744073709551616\r\n\r\n", 400),
    # Codings.
    "coding-gzip": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + END, 501),
    "coding-twice": (POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + END, 400),
    "two-codings": (
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + END,
        400,
    ),
    "coding-identity": (POST + b"Transfer-Encoding: identity\r\n\r\n", 501),
    "coding-near": (POST + b"Transfer-Encoding: xchunked\r\n\r\n" + END, 501),
    "coding-vertical-tab": (POST + b"Transfer-Encoding: chunked\x0b\r\n\r\n" + END, 400),
    "coding-parameter": (POST + b"Transfer-Encoding: chunked;q=1\r\n\r\n" + END, 501),
    "coding-in-1.0": (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + END, 501),
    # Chunks.
    "chunk-prefix": (CHUNKED + b"0x1\r\na\r\n" + END, 400),
    "chunk-sign": (CHUNKED + b"+1\r\na\r\n" + END, 400),
    "chunk-space": (CHUNKED + b"1 \r\na\r\n" + END, 400),
    "chunk-space-first": (CHUNKED + b" 1\r\na\r\n" + END, 400),
    "chunk-overflow": (CHUNKED + b"10000000000000001\r\na\r\n" + END, 400),
    "chunk-empty": (CHUNKED + b"\r\na\r\n" + END, 400),
    "chunk-bare-lf": (CHUNKED + b"1\na\r\n" + END, 400),
    "chunk-bare-cr": (CHUNKED + b"1\ra\r\n" + END, 400),
    "chunk-too-long": (CHUNKED + b"1\r\nab\r\n" + END, 400),
    "chunk-ended-by-lf": (CHUNKED + b"1\r\na\n" + END, 400),
    "chunk-extension-lf": (CHUNKED + b"1;x\n\r\na\r\n" + END, 400),
    "chunk-extension-nul": (CHUNKED + b"1;\x00\r\na\r\n" + END, 400),
    "trailer-length": (CHUNKED + b"0\r\nContent-Length: 1\r\n\r\n", 400),
    # Lines.
    "folded": (POST + b"X: a\r\n b\r\n\r\n", 400),
    "folded-first": (b"GET / HTTP/1.1\r\n X: a\r\n" + HOST + b"\r\n", 400),
    "space-before-colon": (POST + b"Content-Length : 0\r\n\r\n", 400),
    "tab-before-colon": (POST + b"Content-Length\t: 0\r\n\r\n", 400),
    "no-colon": (POST + b"X\r\n\r\n", 400),
    "no-name": (POST + b": a\r\n\r\n", 400),
    "name-with-nul": (POST + b"X\x00: a\r\n\r\n", 400),
    "nul": (POST + b"X: a\x00b\r\n\r\n", 400),
    "control": (POST + b"X: a\x01b\r\n\r\n", 400),
    "delete": (POST + b"X: a\x7fb\r\n\r\n", 400),
    "bare-cr": (POST + b"X: a\rY: b\r\n\r\n", 400),
    "bare-lf": (POST + b"X: a\nY: b\r\n\r\n", 400),
    "only-lf": (b"GET / HTTP/1.1\nHost: here\n\n", 400),
    "only-cr": (b"GET / HTTP/1.1\rHost: here\r\r", 400),
    # Hosts.
    "no-host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "empty-host": (b"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
    "host-list": (b"GET / HTTP/1.1\r\nHost: here, there\r\n\r\n", 400),
    "host-with-path": (b"GET / HTTP/1.1\r\nHost: here/there\r\n\r\n", 400),
    "host-with-user": (b"GET / HTTP/1.1\r\nHost: user@here\r\n\r\n", 400),
    "host-with-space": (b"GET / HTTP/1.1\r\nHost: here there\r\n\r\n", 400),
    "two-hosts": (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    "two-keys": (b"GET / HTTP/1.1\r\n" + HOST + b"Authorization: a\r\n" * 2 + b"\r\n", 400),
    # Versions.
    "0.9": (b"GET /\r\n\r\n", 505),
    "0.9-line": (b"GET /\r\n", 505),
    "0.9-said": (b"GET / HTTP/0.9\r\n" + HOST + b"\r\n", 505),
    "2.0-said": (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
    "2.0-preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "1.2": (b"GET / HTTP/1.2\r\n" + HOST + b"\r\n", 505),
    "1.10": (b"GET / HTTP/1.10\r\n" + HOST + b"\r\n", 400),
    "lower-case": (b"GET / http/1.1\r\n" + HOST + b"\r\n", 400),
    # Targets.
    "absolute": (b"GET http://here/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "authority": (b"GET here:80 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "asterisk": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "fragment": (b"GET /#a HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "not-ascii": (b"GET /\xc3\xa4 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "target-control": (b"GET /\x7f HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "space-in-target": (b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "two-spaces-before": (b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "two-spaces-after": (b"GET /  HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "trailing-space": (b"GET / HTTP/1.1 \r\n" + HOST + b"\r\n", 400),
    "leading-lf": (b"\nGET / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "leading-cr": (b"\rGET / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "leading-space": (b" GET / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "no-method": (b"/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    # Other protocols.
    "rtsp": (b"GET / RTSP/1.0\r\n" + HOST + b"\r\n", 505),
    "ice": (b"SOURCE / ICE/1.0\r\n" + HOST + b"\r\n", 505),
    "unknown-method": (b"FOO / HTTP/1.1\r\n" + HOST + b"\r\n", 501),
    "lower-case-method": (b"get / HTTP/1.1\r\n" + HOST + b"\r\n", 501),
    "connect": (b"CONNECT here:80 HTTP/1.1\r\n" + HOST + b"\r\n", 501),
    "connect-path": (b"CONNECT / HTTP/1.1\r\n" + HOST + b"\r\n", 501),
    "upgrade": (POST + b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n", 501),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    # Expectations.
    "expects-what": (POST + b"Expect: 200-ok\r\nContent-Length: 0\r\n\r\n", 417),
}


@pytest.mark.parametrize(("data", "status"), SMUGGLED.values(), ids=SMUGGLED)
def test_what_could_be_read_in_two_ways_is_refused(run: Run, data: bytes, status: int) -> None:
    """One answer says why, the connection is closed, and nothing reaches who answers."""

    async def main() -> tuple[bytes, Desk]:
        desk = Desk()
        async with listening(desk) as listener:
            return await exchanged(listener.port, data, NEXT), desk

    answer, desk = run(main())
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.count(b"\r\ncontent-length: ") == 1
    assert b"\r\nconnection: close\r\n" in answer
    assert desk.served == []
    assert [head.path for head in desk.admitted] in ([], ["/"])
    assert [refused[0] for refused in desk.reasons] == [status]


@pytest.mark.parametrize("data", [data for data, _ in SMUGGLED.values()], ids=SMUGGLED)
def test_a_refusal_does_not_depend_on_how_the_bytes_come(data: bytes) -> None:
    """Byte for byte or at once, the same is refused for the same reason."""

    async def main() -> tuple[Desk, Desk]:
        at_once, slowly = Desk(), Desk()
        async with listening(at_once) as listener:
            await exchanged(listener.port, data, NEXT)
        async with listening(slowly) as listener, connected(listener.port) as peer:
            for at in range(len(data)):
                peer.send(data[at : at + 1])
                await asyncio.sleep(0)
            peer.send(NEXT)
            await peer.rest()
        return at_once, slowly

    at_once, slowly = asyncio.run(main())
    assert at_once.reasons == slowly.reasons
    assert slowly.served == []


def test_data_after_the_last_request_is_not_read(run: Run) -> None:
    """After `connection: close` the answer comes whole, and what follows is no request."""

    async def main() -> tuple[bytes, Desk]:
        desk = Desk()
        async with listening(desk) as listener:
            asked = request("GET", lines=b"Connection: close\r\n")
            return await exchanged(listener.port, asked, NEXT, bytes(200_000)), desk

    answer, desk = run(main())
    assert answer.endswith(b"\r\n\r\nok")
    assert answer.count(b"\r\ncontent-length: ") == 1
    assert [head.path for head in desk.admitted] == ["/"]


def test_garbage_behind_a_request_is_refused_after_its_answer(run: Run) -> None:
    """An answer in progress, and those that wait, are finished before the refusal that closes."""

    async def main() -> list[int]:
        desk = Desk()
        async with listening(desk) as listener, connected(listener.port) as peer:
            peer.send(request("GET", "/hold"), request("GET", "/waits"), b"\x00garbage")
            call = await desk.held.get()
            call.start(200, b"")
            call.write(b"late")
            peer.send(NEXT)
            call.end()
            statuses = [(await peer.answer()).status for _ in range(3)]
            assert await peer.closed()
            assert [one.head.path for one in desk.served] == ["/hold", "/waits"]
            return statuses

    assert run(main()) == [200, 200, 400]


LIMITS: dict[str, Any] = {"head_bytes": 500, "head_fields": 5, "body_bytes": 100}
LONG_PATH = "/" + "a" * 8200
TOO_MUCH: dict[str, tuple[bytes, int]] = {
    "one-field": (request("GET", lines=b"X: %b\r\n" % (b"a" * 600)), 431),
    "fields": (request("GET", lines=b"".join(b"X%d: a\r\n" % n for n in range(9))), 431),
    "same-field": (request("GET", lines=b"X: a\r\n" * 9), 431),
    "name": (request("GET", lines=b"a" * 600 + b": x\r\n"), 431),
    "target": (request("GET", LONG_PATH), 414),
    "body": (request(body=bytes(101)), 413),
    "announced": (POST + b"Content-Length: 1000000000\r\n\r\n", 413),
    "chunk": (CHUNKED + b"65\r\n" + bytes(101) + b"\r\n" + END, 413),
    "chunks": (CHUNKED + b"1\r\na\r\n" * 101 + END, 413),
}


@pytest.mark.parametrize(("data", "status"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_too_much_is_refused(run: Run, data: bytes, status: int) -> None:
    """Whatever is over its limit is refused with its own status, and the connection closed."""

    async def main() -> tuple[bytes, Desk]:
        desk = Desk()
        async with listening(desk, **LIMITS) as listener:
            return await exchanged(listener.port, data, NEXT), desk

    answer, desk = run(main())
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.count(b"\r\ncontent-length: ") == 1
    assert desk.served == []


def test_what_is_just_within_the_limits_is_served(run: Run) -> None:
    """A head and a body at their limits are no reason to refuse."""

    async def main() -> int:
        async with listening(Desk(), **LIMITS) as listener, connected(listener.port) as peer:
            fields = b"".join(b"X%d: a\r\n" % n for n in range(3))  # Host and the length besides
            peer.send(request(body=bytes(100), lines=fields))
            assert (await peer.answer()).body == bytes(100)
            peer.send(request("GET", lines=b"X: %b\r\n" % (b"a" * 463)))
            return (await peer.answer()).status

    assert run(main()) == 200


@pytest.mark.parametrize(
    ("start", "more", "status"),
    [
        (b"GET / HTTP/1.1\r\nX: a", b"a", 431),
        (b"GET /", b"a", 431),
        (POST + b"Content-Length: 100\r\nX: a", b"a", 431),
        (CHUNKED, b"1\r\na\r\n", 413),
        (CHUNKED + b"1;", b"a", 413),
        (CHUNKED + b"0\r\nX: a", b"a", 413),
        (CHUNKED + b"0\r\n", b"X: a\r\n", 431),
        (b"POST /no HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a", 401),
    ],
    ids=[
        "field",
        "target",
        "second-field",
        "chunks",
        "extension",
        "trailer",
        "trailers",
        "refused",
    ],
)
def test_what_goes_on_for_ever_is_cut_short(
    run: Run, start: bytes, more: bytes, status: int
) -> None:
    """Wherever a client can go on for ever, it is told to stop before much has been read."""

    async def main() -> bytes:
        async with listening(Desk(), **LIMITS) as listener, connected(listener.port) as peer:
            peer.send(start)
            answer = asyncio.create_task(peer.rest())
            while not answer.done():
                peer.send(more * 200)
                await asyncio.sleep(0)
            return await answer

    assert run(main()).startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_a_refusal_arrives_before_the_rest_of_the_body_is_sent(run: Run, *, secure: bool) -> None:
    """A client that sends far too large a body, reading only then, reads the answer whole."""

    async def main() -> tuple[int, bytes]:
        async with (
            listening(Desk(), secure=secure) as listener,
            connected(listener.port, secure=secure) as peer,
        ):
            peer.send(POST + b"Content-Length: 8000000\r\n\r\n")
            for _ in range(120):  # less than what is announced
                peer.send(bytes(1 << 16))
                await peer.writer.drain()
            answer = await peer.answer()
            return answer.status, answer.body

    status, body = run(main())
    assert (status, body) == (413, b"the body has more than 1048576 bytes")


def test_nothing_of_a_field_can_break_a_line(run: Run) -> None:
    """Whatever byte stands in a field's value, none that ends a line reaches who answers."""

    async def main() -> Desk:
        desk = Desk()
        async with listening(desk) as listener:
            for byte in range(256):
                value = b"a%cb" % byte
                async with connected(listener.port) as peer:
                    peer.send(request("GET", "/no", lines=b"X: %b\r\n" % value))
                    assert (await peer.answer()).status in (400, 401)
        return desk

    values = [head.fields[b"x"] for head in run(main()).admitted]
    assert len(values) > 200
    assert not any(byte in value for value in values for byte in b"\r\n\x00")
