"""Requests and what comes back over real sockets: right, wrong, cut, late, and too much."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cheapgpu.core.limits import HEAD_BYTES, HEAD_FIELDS
from cheapgpu.wire.client import Origin, Pool, Sending
from cheapgpu.wire.message import request_bytes
from tests.check.servers import CERTIFICATE, unused_port
from tests.wire.conftest import Run
from tests.wire.peers import Desk, Script, Taker, listening, reset, scripted, until

ASK = request_bytes("POST", "/", b"host: there\r\n", b"question")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
CHUNKS = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
#: What follows an answer and looks like another.
SECOND = b"HTTP/1.1 500 Oh\r\ncontent-length: 3\r\n\r\noh!"


@asynccontextmanager
async def pooled(**settings: Any) -> AsyncGenerator[Pool]:
    """A pool, closed at the end."""
    pool = Pool(**settings)
    try:
        yield pool
    finally:
        await pool.close()


async def asked(pool: Pool, origin: Origin, message: bytes = ASK) -> Taker:
    """One request and all that came of it."""
    taker = Taker()
    pool.send(origin, message, taker)
    await taker.over
    return taker


def outcome(run: Run, *steps: Any) -> tuple[Taker, Script]:
    """What comes of one request to a server that does these steps, before nothing or `OK`."""

    async def main() -> tuple[Taker, Script]:
        async with scripted(steps, [OK]) as (script, origin), pooled() as pool:
            taker = await asked(pool, origin)
            # Whatever came, the next request is answered: the pool is none the worse for it.
            assert (await asked(pool, origin)).body == b"ok"
            return taker, script

    return run(main())


# Connections.


def test_a_connection_is_used_again(run: Run) -> None:
    """Requests one after the other use one connection, and arrive as they were given."""

    async def main() -> Script:
        async with scripted([OK], [OK], [OK]) as (script, origin), pooled() as pool:
            for number in range(3):
                taker = Taker()
                sending = pool.send(origin, ASK, taker)
                await taker.over
                assert (sending.sent, sending.reused) == (True, number > 0)
                assert taker.told == [
                    ("head", 200, {b"content-length": b"2"}),
                    ("body", b"ok"),
                    ("ended", "whole"),
                ]
            assert len(pool.open) == 1
            return script

    script = run(main())
    assert (script.seen, script.connections) == ([ASK] * 3, 1)


def test_requests_at_once_have_connections_of_their_own(run: Run) -> None:
    """A connection carries one request at a time, and afterwards no more are kept than wanted."""

    async def main() -> tuple[int, int]:
        async with scripted(*[["wait", OK]] * 4) as (script, origin), pooled(idle_most=2) as pool:
            takers = [Taker() for _ in range(4)]
            for taker in takers:
                pool.send(origin, ASK, taker)
            await until(lambda: len(script.seen) == 4)
            script.go_on.set()
            for taker in takers:
                await taker.over
            await until(lambda: script.left == 2)
            return script.connections, len(pool.open)

    assert run(main()) == (4, 2)


def test_an_origin_has_connections_of_its_own(run: Run) -> None:
    """A connection to one server is never used for another."""

    async def main() -> list[int]:
        async with (
            scripted([OK], [OK]) as (one, first),
            scripted([OK], [OK]) as (two, second),
            pooled() as pool,
        ):
            for origin in (first, second, first, second):
                await asked(pool, origin)
            return [len(one.seen), one.connections, len(two.seen), two.connections]

    assert run(main()) == [2, 1, 2, 1]


@pytest.mark.parametrize("how", ["close", "reset"])
def test_nothing_is_sent_twice(run: Run, how: str) -> None:
    """A kept connection that dies before its answer is a failure; nobody asks again."""

    async def main() -> tuple[Taker, Script]:
        async with scripted([OK], [how]) as (script, origin), pooled() as pool:
            await asked(pool, origin)
            return await asked(pool, origin), script

    taker, script = run(main())
    assert [told[:2] for told in taker.told] == [("failed", "closed")]
    assert (len(script.seen), script.connections) == (2, 1)


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_kept_connection_that_ends_is_forgotten(run: Run, how: str) -> None:
    """What the server closes while it is idle takes no request."""

    async def main() -> int:
        async with scripted([OK, "wait", how], [OK]) as (script, origin), pooled() as pool:
            await asked(pool, origin)
            assert len(pool.open) == 1
            script.go_on.set()
            await until(lambda: not pool.open)
            await asked(pool, origin)
            return script.connections

    assert run(main()) == 2


def test_a_connection_is_not_kept_for_long(run: Run) -> None:
    """An idle connection is closed after its time, which is less than servers give it."""

    async def main() -> tuple[int, int]:
        async with scripted([OK], [OK]) as (script, origin), pooled(idle_seconds=0.05) as pool:
            await asked(pool, origin)
            await until(lambda: script.left == 1)
            assert not pool.open
            await asked(pool, origin)
            return script.connections, len(script.seen)

    assert run(main()) == (2, 2)


def test_an_old_connection_is_not_used_before_it_is_swept(run: Run) -> None:
    """A connection past its time takes no request, even if nobody has closed it yet."""

    async def main() -> int:
        async with scripted([OK], [OK]) as (script, origin), pooled(idle_seconds=30) as pool:
            await asked(pool, origin)
            (connection,) = pool.open
            connection.idle_since -= 31
            await asked(pool, origin)
            return script.connections

    assert run(main()) == 2


@pytest.mark.parametrize("unasked", [b"x", b"\r\n", SECOND], ids=["byte", "line", "answer"])
def test_what_nobody_asked_for_ends_the_connection(run: Run, unasked: bytes) -> None:
    """Bytes on an idle connection are never part of an answer."""

    async def main() -> tuple[bytes, int]:
        async with scripted([OK, "wait", unasked], [OK]) as (script, origin), pooled() as pool:
            await asked(pool, origin)
            script.go_on.set()
            await until(lambda: not pool.open)
            return (await asked(pool, origin)).body, script.connections

    assert run(main()) == (b"ok", 2)


@pytest.mark.parametrize(
    "answer",
    [
        OK + SECOND,
        OK + b"x",
        CHUNKS + b"2\r\nok\r\n0\r\n\r\n" + SECOND,
        b"HTTP/1.1 204 No\r\n\r\n" + SECOND,
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok" + SECOND,
    ],
    ids=["answer", "byte", "chunked", "no-content", "closed"],
)
def test_what_follows_an_answer_is_no_part_of_it(run: Run, answer: bytes) -> None:
    """An answer with something behind it is whole, and its connection is not used again."""
    taker, script = outcome(run, answer)
    assert [told[0] for told in taker.told if told[0] != "body"] == ["head", "ended"]
    assert taker.told[-1] == ("ended", "whole")
    assert taker.body in (b"ok", b"")
    assert script.connections == 2


def test_an_early_answer_leaves_no_rest_of_a_request(run: Run) -> None:
    """A server that answers before it has read the request gets no second one behind its rest."""
    connections = []

    async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await asyncio.sleep(60)

    async def main() -> list[tuple[str, str]]:
        async with scripted(handler=hasty) as (_, origin), pooled() as pool:
            endings = []
            for body in (bytes(16 << 20), b""):
                taker = await asked(pool, origin, request_bytes("POST", "/", b"", body))
                endings.append(taker.told[-1])
            return endings

    assert run(main()) == [("ended", "whole")] * 2
    assert len(connections) == 2


# Framings.

FRAMINGS: dict[str, tuple[list[Any], bytes, bool]] = {
    "length": ([OK], b"ok", True),
    "no-length-at-all": ([b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"], b"", True),
    "chunked": ([CHUNKS + b"1\r\no\r\n1;x=y\r\nk\r\n0\r\n\r\n"], b"ok", True),
    "trailers": ([CHUNKS + b"2\r\nok\r\n0\r\nstatus: 500\r\n\r\n"], b"ok", True),
    "until-closed": ([b"HTTP/1.1 200 OK\r\n\r\nok", "close"], b"ok", False),
    "until-half-closed": ([b"HTTP/1.1 200 OK\r\n\r\nok", "eof"], b"ok", False),
    "nothing-until-closed": ([b"HTTP/1.1 200 OK\r\n\r\n", "close"], b"", False),
    "announced-close": (
        [b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"],
        b"ok",
        False,
    ),
    "1.0": ([b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"], b"ok", False),
    "1.0-until-closed": ([b"HTTP/1.0 200 OK\r\n\r\nok", "close"], b"ok", False),
    "204": ([b"HTTP/1.1 204 No Content\r\n\r\n"], b"", True),
    "304": ([b"HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n"], b"", True),
    "no-reason": ([b"HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nok"], b"ok", True),
    "upgrade-offered": (
        [b"HTTP/1.1 200 OK\r\nupgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 2\r\n\r\nok"],
        b"ok",
        True,
    ),
    "informational": (
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" + OK],
        b"ok",
        True,
    ),
    "byte-by-byte": ([bytes([byte]) for byte in CHUNKS + b"2\r\nok\r\n0\r\n\r\n"], b"ok", True),
}


@pytest.mark.parametrize(("steps", "body", "kept"), FRAMINGS.values(), ids=FRAMINGS)
def test_each_framing_is_read_to_its_end(
    run: Run, steps: list[Any], body: bytes, *, kept: bool
) -> None:
    """The body is what its framing says, its end is whole, and the connection kept where it may."""
    taker, script = outcome(run, *steps)
    assert taker.told[0][0] == "head"
    assert taker.body == body
    assert taker.told[-1] == ("ended", "whole")
    assert b"link" not in taker.told[0][2]
    assert script.connections == (1 if kept else 2)


def test_fields_are_given_by_their_names(run: Run) -> None:
    """Names are lower case, repeated fields are joined, and trailers are no fields."""
    head = b"HTTP/1.1 429 Busy\r\nRETRY-After: 1\r\nx: a\r\nX: b\r\nempty:\r\n"
    taker, _ = outcome(run, head, b"transfer-encoding: chunked\r\n\r\n0\r\nx: c\r\n\r\n")
    _, status, fields = taker.told[0]
    assert status == 429
    del fields[b"transfer-encoding"]
    assert fields == {b"retry-after": b"1", b"x": b"a, b", b"empty": b""}


def test_one_read_is_one_call(run: Run) -> None:
    """What one read brings of a body arrives in one piece, however it was framed."""
    taker, _ = outcome(run, CHUNKS + b"1\r\na\r\n2\r\nbc\r\n3\r\ndef\r\n0\r\n\r\n")
    assert [told for told in taker.told if told[0] == "body"] == [("body", b"abcdef")]


# What goes wrong.

WRONG: dict[str, tuple[list[Any], tuple[str, str], bytes]] = {
    "closed": (["close"], ("failed", "closed"), b""),
    "reset": (["reset"], ("failed", "closed"), b""),
    "head-cut": ([HEAD[:-4], "close"], ("failed", "closed"), b""),
    "only-informational": ([b"HTTP/1.1 100 Continue\r\n\r\n", "close"], ("failed", "closed"), b""),
    "length-cut": ([HEAD + b"two", "close"], ("ended", "cut"), b"two"),
    "length-half-closed": ([HEAD + b"two", "eof"], ("ended", "cut"), b"two"),
    "length-cut-at-once": ([HEAD, "close"], ("ended", "cut"), b""),
    "chunk-cut": ([CHUNKS + b"5\r\ntwo", "close"], ("ended", "cut"), b"two"),
    "last-chunk-missing": ([CHUNKS + b"3\r\ntwo\r\n", "close"], ("ended", "cut"), b"two"),
    "last-line-missing": ([CHUNKS + b"3\r\ntwo\r\n0\r\n", "close"], ("ended", "cut"), b"two"),
    "body-malformed": ([CHUNKS + b"3\r\ntwo\r\nxyz\r\n"], ("ended", "cut"), b"two"),
    "chunk-too-long": ([CHUNKS + b"3\r\ntwoo"], ("ended", "cut"), b"two"),
    "trailers-endless": (
        [CHUNKS + b"3\r\ntwo\r\n0\r\nx: ", *[b"a" * 9000] * 40],
        ("ended", "cut"),
        b"two",
    ),
    "extension-endless": (
        [CHUNKS + b"3\r\ntwo\r\n1;x=", *[b"a" * 9000] * 40],
        ("ended", "cut"),
        b"two",
    ),
    "no-http": ([b"SSH-2.0-OpenSSH_9.9\r\n"], ("failed", "malformed"), b""),
    "http-2": ([b"HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\nok"], ("failed", "malformed"), b""),
    "http-0.9": ([b"HTTP/0.9 200 OK\r\ncontent-length: 2\r\n\r\nok"], ("failed", "malformed"), b""),
    "status-0": ([b"HTTP/1.1 000 OK\r\ncontent-length: 2\r\n\r\nok"], ("failed", "malformed"), b""),
    "bare-lf": ([b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok"], ("failed", "malformed"), b""),
    "folded": ([b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\n\r\n"], ("failed", "malformed"), b""),
    "nul": ([b"HTTP/1.1 200 OK\r\nx: a\x00\r\n\r\n"], ("failed", "malformed"), b""),
    "two-lengths": (
        [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok"],
        ("failed", "malformed"),
        b"",
    ),
    "length-and-chunked": ([HEAD[:-2] + CHUNKS[17:]], ("failed", "malformed"), b""),
    "coding": (
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
        ("failed", "malformed"),
        b"",
    ),
    "coding-1.0": ([CHUNKS.replace(b"1.1", b"1.0") + b"0\r\n\r\n"], ("failed", "malformed"), b""),
    "switching": (
        [b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n" + OK],
        ("failed", "malformed"),
        b"",
    ),
    "too-many-informational": (
        [b"HTTP/1.1 103 Hints\r\n\r\n" * 11 + OK],
        ("failed", "malformed"),
        b"",
    ),
    "head-endless": ([b"HTTP/1.1 200 OK\r\nx: ", *[b"a" * 9000] * 40], ("failed", "head"), b""),
    "head-large": (
        [b"HTTP/1.1 200 OK\r\nx: %b\r\n\r\n" % (b"a" * HEAD_BYTES)],
        ("failed", "head"),
        b"",
    ),
    "fields": (
        [
            b"HTTP/1.1 200 OK\r\n%b\r\n"
            % (b"".join(b"x%d: a\r\n" % n for n in range(HEAD_FIELDS + 1)))
        ],
        ("failed", "head"),
        b"",
    ),
    "same-field": (
        [b"HTTP/1.1 200 OK\r\n%b\r\n" % (b"x: a\r\n" * (HEAD_FIELDS + 1))],
        ("failed", "head"),
        b"",
    ),
}


@pytest.mark.parametrize(("steps", "told", "body"), WRONG.values(), ids=WRONG)
def test_what_goes_wrong_is_told_once(
    run: Run, steps: list[Any], told: tuple[str, str], body: bytes
) -> None:
    """No answer is a failure, half of one is cut; what came before that is handed on first."""
    taker, script = outcome(run, *steps)
    assert taker.told[-1][:2] == told
    assert taker.body == body
    assert script.connections == 2


def test_a_reset_cuts_a_body_that_has_no_other_end(run: Run) -> None:
    """Only an orderly end of the connection ends a body that nothing else ends."""

    async def main() -> Taker:
        async with (
            scripted([b"HTTP/1.1 200 OK\r\n\r\nok", "wait", "reset"]) as (script, origin),
            pooled() as pool,
        ):
            taker = Taker()
            pool.send(origin, ASK, taker)
            await until(lambda: taker.body)
            script.go_on.set()
            await taker.over
            return taker

    assert run(main()).told[-1] == ("ended", "cut")


def test_nothing_of_a_field_can_break_a_line(run: Run) -> None:
    """Whatever byte stands in a field's value, none that ends a line is handed on."""

    async def main() -> list[bytes]:
        answers = [
            [b"HTTP/1.1 200 OK\r\nx: a%cb\r\ncontent-length: 0\r\n\r\n" % byte]
            for byte in range(256)
        ]
        values = []
        async with scripted(*answers) as (_, origin), pooled() as pool:
            for _ in answers:
                taker = await asked(pool, origin)
                if taker.told[0][0] == "head":
                    values.append(taker.told[0][2][b"x"])
        return values

    values = run(main())
    assert len(values) > 200
    assert not any(byte in value for value in values for byte in b"\r\n\x00")


# No connection.


def test_a_refused_connection_is_told(run: Run) -> None:
    """Where nobody listens there is no connection, and nothing was sent."""

    async def main() -> tuple[Taker, Sending]:
        async with pooled() as pool:
            taker = Taker()
            sending = pool.send(Origin("127.0.0.1", unused_port()), ASK, taker)
            await taker.over
            return taker, sending

    taker, sending = run(main())
    assert taker.told == [("failed", "connect", "the connection is refused")]
    assert not sending.sent


@pytest.mark.parametrize(
    "origin",
    [
        Origin(".".join(["a" * 60] * 5), 80),
        Origin("a..b", 80),
        Origin("a" * 64 + ".b", 80),
        Origin("127.0.0.1", 1 << 17),
    ],
    ids=["long", "empty-label", "long-label", "port"],
)
def test_an_address_that_is_none_is_told(run: Run, origin: Origin) -> None:
    """A name that names nothing, or a port that is none, is a failure like any other."""

    async def main() -> Taker:
        async with pooled() as pool:
            return await asked(pool, origin)

    assert [told[:2] for told in run(main()).told] == [("failed", "connect")]


@asynccontextmanager
async def deaf() -> AsyncGenerator[Origin]:
    """A port on which connections are not accepted, because too many wait already."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen(0)
        where = one.getsockname()
        waiting = []
        for _ in range(3):
            other = socket.socket()
            other.setblocking(False)  # noqa: FBT003 -- the socket's own word
            other.connect_ex(where)
            waiting.append(other)
        try:
            yield Origin("127.0.0.1", where[1])
        finally:
            for other in waiting:
                other.close()


def test_a_connection_must_come_in_time(run: Run) -> None:
    """A server that does not accept is given up."""

    async def main() -> Taker:
        async with deaf() as origin, pooled(connect_seconds=0.1) as pool:
            return await asked(pool, origin)

    assert run(main()).told == [("failed", "connect", "no connection within 0.1 s")]


def test_the_address_is_dialled_in_place_of_the_name(run: Run) -> None:
    """An origin's address is where its connections go."""

    async def main() -> bytes:
        async with scripted([OK]) as (_, origin), pooled() as pool:
            named = Origin("no.such.name.invalid", origin.port, address="127.0.0.1")
            return (await asked(pool, named)).body

    assert run(main()) == b"ok"


def trusting() -> ssl.SSLContext:
    """Settings that trust the certificate of the tests."""
    return ssl.create_default_context(cafile=CERTIFICATE)


@pytest.mark.parametrize(
    ("tls", "name"),
    [(ssl.create_default_context(), "localhost"), (trusting(), "elsewhere.example")],
    ids=["not-trusted", "another-name"],
)
def test_a_certificate_that_proves_nothing_is_told(
    run: Run, tls: ssl.SSLContext, name: str
) -> None:
    """Without a trusted certificate for the right name nothing is sent."""

    async def main() -> tuple[Taker, Desk]:
        desk = Desk()
        async with listening(desk, secure=True) as listener, pooled() as pool:
            origin = Origin("127.0.0.1", listener.port, tls=tls, server_name=name)
            return await asked(pool, origin), desk

    taker, desk = run(main())
    assert [told[:2] for told in taker.told] == [("failed", "tls")]
    assert taker.told[0][2].startswith("the certificate is not accepted: ")
    assert desk.admitted == []


def test_tls_carries_requests(run: Run) -> None:
    """With a trusted certificate requests are answered, and the connection is kept."""

    async def main() -> list[bool]:
        async with listening(Desk(), secure=True) as listener, pooled() as pool:
            origin = Origin("localhost", listener.port, tls=trusting(), address="127.0.0.1")
            reused = []
            for _ in range(2):
                taker = Taker()
                reused.append(pool.send(origin, ASK, taker).reused)
                await taker.over
                assert taker.body == b"question"
            return reused

    assert run(main()) == [False, True]


def test_no_tls_where_it_is_wanted_is_told(run: Run) -> None:
    """A server that answers a handshake with something else fails the request."""

    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(60)

    async def main() -> Taker:
        async with scripted(handler=plain) as (_, origin), pooled() as pool:
            secure = Origin("127.0.0.1", origin.port, tls=trusting())
            return await asked(pool, secure)

    assert [told[:2] for told in run(main()).told] == [("failed", "tls")]


# Leaving.


def test_a_request_can_be_cancelled_before_there_is_a_connection(run: Run) -> None:
    """Nobody is told anything of a cancelled request, and no connection is left of it."""

    async def main() -> list[Any]:
        async with deaf() as origin, pooled() as pool:
            at_once, later = Taker(), Taker()
            pool.send(origin, ASK, at_once).cancel()
            sending = pool.send(origin, ASK, later)
            await asyncio.sleep(0.02)
            sending.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not pool.open
            return at_once.told + later.told

    assert run(main()) == []


def test_a_request_can_be_cancelled_while_tls_begins(run: Run) -> None:
    """The server sees the connection close in the middle of the handshake."""
    heard = []

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1))
        await reader.read()
        heard.append(b"closed")

    async def main() -> list[Any]:
        async with scripted(handler=silent) as (_, origin), pooled() as pool:
            taker = Taker()
            secure = Origin("127.0.0.1", origin.port, tls=trusting())
            sending = pool.send(secure, ASK, taker)
            await until(lambda: heard)
            sending.cancel()
            await until(lambda: len(heard) == 2)
            return taker.told

    assert run(main()) == []


@pytest.mark.parametrize("steps", [["wait"], [HEAD, "wait"], [HEAD + b"on", "wait"]])
def test_a_request_can_be_cancelled(run: Run, steps: list[Any]) -> None:
    """Whatever has come of its answer, the server sees the close, and nobody is told more."""

    async def main() -> tuple[list[Any], list[Any]]:
        async with scripted([*steps, b"more"]) as (script, origin), pooled() as pool:
            taker = Taker()
            sending = pool.send(origin, ASK, taker)
            await until(
                lambda: len(taker.told) == (steps != ["wait"]) + (len(steps[0]) > len(HEAD))
            )
            await until(lambda: script.seen)
            before = list(taker.told)
            sending.cancel()
            sending.cancel()
            await until(lambda: not pool.open)
            script.go_on.set()
            await until(lambda: script.left)
            return before, taker.told

    before, after = run(main())
    assert after == before


class Leaver(Taker):
    """Cancels as soon as it is told something."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self.sending: Sending | None = None
        self._when = when

    def head_received(self, status: int, fields: dict[bytes, bytes]) -> None:
        """Take the head."""
        super().head_received(status, fields)
        self._look("head")

    def body_received(self, data: bytes) -> None:
        """Take a piece."""
        super().body_received(data)
        self._look("body")

    def _look(self, what: str) -> None:
        assert self.sending is not None
        if what == self._when:
            self.sending.cancel()
        elif what == "head" and self._when == "paused":
            self.sending.pause()


@pytest.mark.parametrize("when", ["head", "body"])
@pytest.mark.parametrize("answer", [OK, OK + SECOND, CHUNKS + b"2\r\nok\r\nxyz"])
def test_a_receiver_can_cancel_from_within(run: Run, when: str, answer: bytes) -> None:
    """After a cancel in the middle of a read nothing more of that read is told."""

    async def main() -> tuple[list[str], int]:
        async with scripted([answer], [OK]) as (script, origin), pooled() as pool:
            leaver = Leaver(when)
            leaver.sending = pool.send(origin, ASK, leaver)
            await until(lambda: script.left)
            assert not pool.open
            assert (await asked(pool, origin)).body == b"ok"
            return [told[0] for told in leaver.told], script.connections

    assert run(main()) == (["head", "body"][: 1 + (when == "body")], 2)


def test_a_paused_answer_is_not_read(run: Run) -> None:
    """pause() stops a server that has much to say; resume() brings all of it, in order."""
    pieces = [bytes([number]) * (1 << 20) for number in range(24)]

    async def main() -> tuple[int, bytes]:
        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (24 << 20)
        async with scripted([head, *pieces]) as (script, origin), pooled() as pool:
            taker = Leaver("paused")
            taker.sending = pool.send(origin, ASK, taker)
            taker.sending.pause()
            await until(lambda: script.writers)
            transport = script.writers[0].transport
            await until(lambda: transport.get_write_buffer_size() > 0)
            taker.sending.resume()  # … until its head has come: see Leaver
            await until(lambda: taker.told)
            await asyncio.sleep(0.02)
            assert transport.get_write_buffer_size() > 0
            held = len(taker.body)
            taker.sending.resume()
            await taker.over
            return held, taker.body

    held, body = run(main())
    assert held <= 1 << 20  # one read may come with the head
    assert body == b"".join(pieces)


def test_a_connection_is_kept_after_a_pause(run: Run) -> None:
    """An answer that ends in a pause leaves a connection that can be read from."""

    async def main() -> tuple[bytes, int]:
        async with scripted([OK], [OK]) as (script, origin), pooled() as pool:
            taker = Leaver("paused")
            taker.sending = pool.send(origin, ASK, taker)
            await taker.over
            return (await asked(pool, origin)).body, script.connections

    assert run(main()) == (b"ok", 1)


class Faulty(Taker):
    """Fails as soon as it is told something."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self._when = when

    def head_received(self, status: int, fields: dict[bytes, bytes]) -> None:
        """Fail."""
        super().head_received(status, fields)
        if self._when == "head":
            raise RuntimeError("a fault")

    def body_received(self, data: bytes) -> None:
        """Fail."""
        super().body_received(data)
        if self._when == "body":
            raise RuntimeError("a fault")


@pytest.mark.parametrize("when", ["head", "body"])
def test_a_fault_of_the_receiver_is_reported(run: Run, when: str) -> None:
    """A receiver that raises is reported as such, and told that its answer is cut."""

    async def main() -> Taker:
        async with scripted([HEAD, b"on", "wait"]) as (_, origin), pooled() as pool:
            faulty = Faulty(when)
            pool.send(origin, ASK, faulty)
            await faulty.over
            return faulty

    assert run(main()).told[-1] == ("ended", "cut")
    (report,) = run.reports
    assert report["message"].startswith(f"Faulty.{when}_received failed: RuntimeError at ")
    assert set(report) == {"message"}
    run.reports.clear()


def test_closing_the_pool_tells_everybody(run: Run) -> None:
    """Whatever a request waits for when the pool is closed, its receiver is told, once."""

    async def main() -> tuple[list[Any], int]:
        async with (
            deaf() as nowhere,
            scripted([OK, "wait"], [HEAD + b"on", "wait"], ["wait"]) as (script, origin),
        ):
            pool = Pool()
            await asked(pool, origin)  # … and its connection is idle
            takers = [Taker() for _ in range(5)]
            (connection,) = pool.open
            connection.idle_since -= 60
            pool.send(origin, ASK, takers[0])
            await until(lambda: takers[0].body)
            pool.send(origin, ASK, takers[1])
            await until(lambda: len(script.seen) == 3)
            pool.send(nowhere, ASK, takers[2])
            await asyncio.sleep(0.02)
            pool.send(nowhere, ASK, takers[3])
            await pool.close()
            assert not pool.open
            pool.send(origin, ASK, takers[4])
            await takers[4].over
            await pool.close()
            return [taker.told[-1][:2] for taker in takers], script.connections

    told, connections = run(main())
    assert told == [("ended", "cut"), *[("failed", "closed")] * 4]
    assert connections == 3


def test_a_large_request_to_a_server_that_does_not_read_is_held_once(run: Run) -> None:
    """What is buffered of a request is at most the request; cancelling it lets it go."""

    async def slow(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(60)

    async def main() -> list[Any]:
        async with scripted(handler=slow) as (_, origin), pooled() as pool:
            taker = Taker()
            sending = pool.send(origin, request_bytes("POST", "/", b"", bytes(16 << 20)), taker)
            await until(lambda: sending.sent)
            await asyncio.sleep(0.02)
            assert len(pool.open) == 1
            sending.cancel()
            await until(lambda: not pool.open)
            return taker.told

    assert run(main()) == []


def test_a_broken_connection_is_forgotten(run: Run) -> None:
    """A server that breaks every connection leaves none in the pool."""

    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        reset(writer)

    async def main() -> tuple[set[Any], int]:
        async with scripted(handler=rude) as (_, origin), pooled() as pool:
            told = {(await asked(pool, origin)).told[-1][:2] for _ in range(5)}
            await until(lambda: not pool.open)
            return told, len(pool.open)

    assert run(main()) == ({("failed", "closed")}, 0)
