"""An endpoint that conforms: it knows one model, whose answers are a script.

Requests are read by the project's own decoder; answers are made by hand, so that the two sides can
disagree. One connection carries one request.
"""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count, cycle, islice
from typing import Any

import h11

from cheapgpu.core.request import ChatRequest, Refusal, decode_request, refuse_content_type

_READ_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What the endpoint knows and says."""

    model: str = "scripted"
    key: str = "scripted-key-0123456789"
    #: One word is one token; they are said over and over, up to the limit of the request.
    words: tuple[str, ...] = ("Rain", " falls", " on", " the", " café", ".")
    #: Seconds between two words.
    pause: float = 0.0
    #: The largest max_completion_tokens that is admitted.
    ceiling: int = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class _Error:
    status: int
    type: str
    message: str
    param: str | None = None

    def body(self) -> bytes:
        error = {"message": self.message, "type": self.type, "param": self.param, "code": None}
        return json.dumps({"error": error}).encode()


class Endpoint:
    """Answers connections as a script says; an instance is a handler for asyncio's servers."""

    def __init__(self, script: Script) -> None:
        self.script = script
        #: The requests that were answered with 200.
        self.answered: list[ChatRequest] = []
        self._numbers = count(1)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request, answer it, and close."""
        http = h11.Connection(h11.SERVER)
        head, body = await _receive(http, reader)
        request = self._admit(head, body)
        if isinstance(request, _Error):
            _send_whole(http, writer, request.status, request.body())
        elif request.stream:
            self.answered.append(request)
            await self._stream(http, writer, request)
        else:
            self.answered.append(request)
            await asyncio.sleep(self.script.pause * request.max_completion_tokens)
            _send_whole(http, writer, 200, self._completion(request))
        await writer.drain()

    def _admit(self, head: h11.Request, body: bytes) -> ChatRequest | _Error:
        """The checks in their order: key, body, model, limit."""
        fields = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        scheme, _, key = fields.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(key, self.script.key):
            message = "a valid bearer key is needed"
            return _Error(status=401, type="authentication_error", message=message)
        request = refuse_content_type(fields.get("content-type")) or decode_request(body)
        kind = "invalid_request_error"
        if isinstance(request, Refusal):
            return _Error(status=400, type=kind, message=request.message, param=request.param)
        if request.model != self.script.model:
            message = "model: this endpoint does not have it"
            return _Error(status=404, type=kind, message=message, param="model")
        if request.max_completion_tokens > self.script.ceiling:
            message = f"max_completion_tokens: at most {self.script.ceiling} are admitted"
            return _Error(status=400, type=kind, message=message, param="max_completion_tokens")
        return request

    async def _stream(
        self, http: h11.Connection, writer: asyncio.StreamWriter, request: ChatRequest
    ) -> None:
        fields = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]
        writer.write(http.send(h11.Response(status_code=200, headers=fields)))
        async for event in self._events(request):
            writer.write(http.send(h11.Data(data=b"data: " + event + b"\n\n")))
            await writer.drain()
        writer.write(http.send(h11.EndOfMessage()))

    async def _events(self, request: ChatRequest) -> AsyncIterator[bytes]:
        """The data of each event of a stream, in the profile's order."""
        identity = self._identity("chat.completion.chunk")

        def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return json.dumps({**identity, "choices": [choice], "usage": None}).encode()

        yield chunk({"role": "assistant", "content": ""})
        for word in self._said(request):
            await asyncio.sleep(self.script.pause)
            yield chunk({"content": word})
        yield chunk({}, "length")
        yield json.dumps({**identity, "choices": [], "usage": self._usage(request)}).encode()
        yield b"[DONE]"

    def _completion(self, request: ChatRequest) -> bytes:
        message = {"role": "assistant", "content": "".join(self._said(request))}
        choice = {"index": 0, "message": message, "finish_reason": "length"}
        identity = self._identity("chat.completion")
        answer = {**identity, "choices": [choice], "usage": self._usage(request)}
        return json.dumps(answer).encode()

    def _identity(self, kind: str) -> dict[str, Any]:
        number = next(self._numbers)
        return {
            "id": f"scripted-{number}",
            "object": kind,
            "created": 1_767_225_600 + number,
            "model": self.script.model,
        }

    def _said(self, request: ChatRequest) -> list[str]:
        return list(islice(cycle(self.script.words), request.max_completion_tokens))

    def _usage(self, request: ChatRequest) -> dict[str, int]:
        asked = sum(len(message.content.split()) + 2 for message in request.messages)
        said = request.max_completion_tokens
        return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


async def _receive(http: h11.Connection, reader: asyncio.StreamReader) -> tuple[h11.Request, bytes]:
    head, body = None, b""
    while True:
        event = http.next_event()
        match event:
            case h11.Request():
                head = event
            case h11.Data():
                body += event.data
            case h11.EndOfMessage() if head is not None:
                return head, body
            case _:
                http.receive_data(await reader.read(_READ_BYTES))


def _send_whole(
    http: h11.Connection, writer: asyncio.StreamWriter, status: int, body: bytes
) -> None:
    fields = [("content-type", "application/json"), ("content-length", str(len(body)))]
    if status == 401:
        fields.append(("www-authenticate", "Bearer"))
    response = h11.Response(status_code=status, headers=fields)
    for part in (response, h11.Data(data=body), h11.EndOfMessage()):
        writer.write(http.send(part) or b"")
