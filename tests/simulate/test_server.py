"""The server of a simulated endpoint: HTTP/1.1, its limits, and clients that leave."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from cheapgpu.core import examples
from cheapgpu.simulate import server
from cheapgpu.simulate.asked import Asked
from cheapgpu.simulate.endpoint import Endpoint, SimulateError
from cheapgpu.simulate.faults import chosen
from cheapgpu.simulate.server import serving
from tests.simulate.asking import KEY, RIGHT

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def post(body: bytes = examples.WHOLE_REQUEST, *fields: str) -> bytes:
    """A right request as bytes."""
    lines = (
        "POST /v1/chat/completions HTTP/1.1",
        "host: endpoint.example",
        f"authorization: Bearer {KEY}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *fields,
    )
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode() + body


def with_server(
    client: Callable[[str], Awaitable[None]],
    endpoint: Endpoint = RIGHT,
    heard: Callable[[Asked], None] | None = None,
) -> None:
    """Let a client meet an endpoint."""

    async def meet() -> None:
        async with asyncio.timeout(20), serving(endpoint, heard=heard) as url:
            await client(url)

    asyncio.run(meet())


async def connected(url: str) -> Streams:
    """A connection to the endpoint."""
    parts = urlsplit(url)
    return await asyncio.open_connection(parts.hostname, parts.port)


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of an answer with a content-length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
    return int(head.split()[1]), await reader.readexactly(int(length))


def test_connection_carries_several_requests() -> None:
    """Answers come in order, a pipelined request included; then the client closes."""
    heard: list[Asked] = []

    async def client(url: str) -> None:
        reader, writer = await connected(url)
        writer.write(post())
        assert (await answer(reader))[0] == 200
        writer.write(post() + post(b"{") + post())
        assert [(await answer(reader))[0] for _ in range(3)] == [200, 400, 200]
        writer.close()

    with_server(client, heard=heard.append)
    assert [asked.number for asked in heard] == [1, 2, 3, 4]
    assert heard[-1].before is not None
    assert heard[-1].before.number == 2


def test_request_sent_while_another_is_answered_waits() -> None:
    """What comes during an answer is the next request."""

    async def client(url: str) -> None:
        reader, writer = await connected(url)
        writer.write(post())
        await asyncio.sleep(0.02)
        writer.write(post())
        assert [(await answer(reader))[0] for _ in range(2)] == [200, 200]
        writer.close()

    with_server(client, replace(RIGHT, pace=0.002))


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 40_000, 431),
        (post(b"x" * ((1 << 20) + 1)), 413),
    ],
)
def test_what_is_beyond_limits_is_refused_and_the_connection_closed(
    sent: bytes, status: int
) -> None:
    """No head and no body is kept beyond its limit."""

    async def client(url: str) -> None:
        reader, writer = await connected(url)
        writer.write(sent)
        assert (await answer(reader))[0] == status
        writer.close()

    with_server(client)


def test_body_is_asked_for_where_the_client_waits_for_that() -> None:
    """RFC 9110 section 10.1.1: 100 comes before the body, and the answer after it."""
    body = examples.WHOLE_REQUEST
    request = post(body, "expect: 100-continue")

    async def client(url: str) -> None:
        reader, writer = await connected(url)
        writer.write(request[: -len(body)])
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(body)
        assert (await answer(reader))[0] == 200
        writer.close()

    with_server(client)


@pytest.mark.parametrize("cut", [0, 1, 40, 200])
def test_client_that_leaves_before_its_request_is_whole_is_forgotten(cut: int) -> None:
    """Nothing is answered to half a request, and the next client is served."""

    async def client(url: str) -> None:
        reader, writer = await connected(url)
        writer.write(post()[:cut])
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        reader, writer = await connected(url)
        writer.write(post())
        assert (await answer(reader))[0] == 200
        writer.close()

    with_server(client)


def test_client_that_leaves_a_stream_keeps_nobody_waiting() -> None:
    """The right endpoint ends its work when a client has gone."""

    async def client(url: str) -> None:
        reader, writer = await connected(url)
        writer.write(post(examples.STREAM_REQUEST))
        await reader.readuntil(b"\n\n")
        writer.close()
        reader, writer = await connected(url)
        writer.write(post(b"{"))
        assert (await answer(reader))[0] == 400
        writer.close()

    with_server(client, replace(RIGHT, pace=5.0))


def test_too_many_connections_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit there is 503, with a time after which to come again."""
    monkeypatch.setattr(server, "_CONNECTIONS", 1)

    async def client(url: str) -> None:
        reader, writer = await connected(url)
        writer.write(post())
        assert (await answer(reader))[0] == 200
        other, more = await connected(url)
        assert (await answer(other))[0] == 503
        for one in (writer, more):
            one.close()

    with_server(client)


def test_silent_client_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without a request, or with half of one, is closed in time."""
    monkeypatch.setattr(server, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 0.05)

    async def client(url: str) -> None:
        for sent in (b"", post()[:-1]):
            reader, writer = await connected(url)
            writer.write(sent)
            assert await reader.read() == b""
            writer.close()

    with_server(client)


def test_server_that_ends_ends_its_answers() -> None:
    """A hanging answer does not keep the server from ending."""

    async def client(url: str) -> None:
        reader, writer = await connected(url)
        writer.write(post())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.05)
        writer.close()

    with_server(client, replace(RIGHT, faults=chosen(["timing/no-answer"])))


def test_dropped_request_is_one_alone() -> None:
    """An endpoint that fell over a body drops the request after it, and is there again."""

    async def client(url: str) -> None:
        statuses = []
        for body in (b"{", examples.WHOLE_REQUEST, examples.WHOLE_REQUEST):
            reader, writer = await connected(url)
            writer.write(post(body))
            try:
                statuses.append((await answer(reader))[0])
            except asyncio.IncompleteReadError:
                statuses.append(0)
            writer.close()
        assert statuses == [400, 0, 200]

    with_server(client, replace(RIGHT, faults=chosen(["service/answers-after-fault"])))


@pytest.mark.parametrize("port", [70_000, -1])
def test_port_that_is_none_is_refused(port: int) -> None:
    """The message says what to give."""

    async def serve() -> None:
        async with serving(RIGHT, port=port):
            pass

    with pytest.raises(SimulateError, match=f"port {port}: the port must be 0 to 65535"):
        asyncio.run(serve())


def test_port_that_is_taken_is_refused() -> None:
    """So is an address on which another listens."""

    async def client(url: str) -> None:
        async with serving(RIGHT, port=urlsplit(url).port or 0):
            pass

    with pytest.raises(SimulateError, match="give another --port"):
        with_server(client)
