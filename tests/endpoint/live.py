"""A running endpoint before a scripted engine, and a client of few words."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from cheapgpu.endpoint.running import Running, running_endpoint
from cheapgpu.endpoint.settings import ModelSettings, Settings, UpstreamSettings
from tests.check.servers import Handler, chunked, read_request

KEY: Final = "a-key-of-a-buyer"
ENVIRONMENT: Final = {"KEYS": KEY, "ENGINE_KEY": "a-key-of-the-engine"}
MODELS: Final = b'{"object":"list","data":[{"id":"engine-m1","object":"model","owned_by":"vllm"}]}'
CHUNKED_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def whole(body: bytes, status: str = "200 OK", media_type: str = "application/json") -> bytes:
    """A response with its length."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def streamed(*bodies: bytes) -> bytes:
    """A response of an event stream, whole."""
    return CHUNKED_HEAD + chunked(*bodies) + b"0\r\n\r\n"


@dataclass
class Engine:
    """A scripted engine: it lists its models, and gives everything else to a handler."""

    handler: Handler
    models: bytes = field(default_factory=lambda: whole(MODELS))
    #: The requests for answers that came.
    seen: list[bytes] = field(default_factory=list)
    #: Set once a request for an answer has come.
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                request = await read_request(reader)
                if request.startswith(b"GET /v1/models "):
                    writer.write(self.models)
                    continue
                self.seen.append(request)
                self.asked.set()
                await self.handler(reader, writer)
                if not writer.is_closing():
                    continue
                return


def saying(*steps: bytes | float) -> Handler:
    """A handler that writes bytes and waits seconds, and leaves the connection open."""

    async def handler(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for step in steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            else:
                await asyncio.sleep(step)

    return handler


def dying(*steps: bytes | float) -> Handler:
    """A handler that does the steps, and then closes the connection."""
    say = saying(*steps)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await say(reader, writer)
        writer.close()

    return handler


@asynccontextmanager
async def engine_at(handler: Handler, port: int = 0) -> AsyncGenerator[str]:
    """The completions URL of a server that gives its connections to `handler`."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", port)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/chat/completions"
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def settings(url: str, **changes: Any) -> Settings:
    """Settings of an endpoint before one engine."""
    upstream: dict[str, Any] = {
        "url": url,
        "key_env": "ENGINE_KEY",
        "model": (ModelSettings(id="m1", engine_id="engine-m1", ceiling=128),),
    }
    for name in tuple(changes):
        if name in UpstreamSettings.__struct_fields__ and name != "key_env":
            upstream[name] = changes.pop(name)
    given: dict[str, Any] = {"port": 0, "access_log": "", "key_env": ("KEYS",), **changes}
    return Settings(**given, upstream=(UpstreamSettings(**upstream),))


@asynccontextmanager
async def endpoint_before(
    handler: Handler, tell: Callable[[str], None] = lambda _: None, **changes: Any
) -> AsyncGenerator[Running]:
    """A running endpoint before an engine with this handler."""
    async with (
        engine_at(handler) as url,
        running_endpoint(settings(url, **changes), ENVIRONMENT, tell) as running,
    ):
        yield running


@dataclass(frozen=True)
class Answer:
    """What a client got."""

    status: int
    fields: dict[str, str]
    body: bytes
    #: Whether the body ended as its framing announced.
    whole: bool

    @property
    def error(self) -> dict[str, Any]:
        """The error of a refusal."""
        value: dict[str, Any] = json.loads(self.body)["error"]
        return value


def question(**changes: Any) -> bytes:
    """The body of a valid request, with members changed; those that are None are left out."""
    value = {
        "model": "m1",
        "messages": [{"role": "user", "content": "Describe how rain forms."}],
        "max_completion_tokens": 64,
        "stream": True,
        "stream_options": {"include_usage": True},
        **changes,
    }
    return json.dumps({k: v for k, v in value.items() if v is not None}).encode()


PLAIN: Final = question(stream=False, stream_options=None)


async def ask(
    url: str,
    body: bytes = b"",
    *,
    key: str | None = KEY,
    method: str = "POST",
    path: str | None = None,
    media_type: str = "application/json",
) -> Answer:
    """Send one request on a connection of its own, and read the whole answer."""
    reader, writer = await send(url, body, key=key, method=method, path=path, media_type=media_type)
    try:
        return await read_answer(reader)
    finally:
        writer.close()


async def send(
    url: str,
    body: bytes,
    *,
    key: str | None = KEY,
    method: str = "POST",
    path: str | None = None,
    media_type: str = "application/json",
    tls: ssl.SSLContext | None = None,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send one request, and give the connection."""
    parts = urlsplit(url)
    name = "localhost" if tls else None
    reader, writer = await asyncio.open_connection(
        parts.hostname, parts.port, ssl=tls, server_hostname=name
    )
    bearer = f"authorization: Bearer {key}\r\n" if key is not None else ""
    writer.write(
        f"{method} {path or parts.path} HTTP/1.1\r\nhost: x\r\n{bearer}"
        f"content-type: {media_type}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        + body
    )
    return reader, writer


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read one answer to its end."""
    status, fields = await read_head(reader)
    body, complete = b"", True
    try:
        if fields.get("transfer-encoding") == "chunked":
            while size := int(await reader.readuntil(b"\r\n"), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readexactly(2)
        else:
            body = await reader.readexactly(int(fields["content-length"]))
    except (asyncio.IncompleteReadError, ConnectionError):
        complete = False
    return Answer(status, fields, body, complete)


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Read the head of an answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    return int(head[0].split()[1]), fields
