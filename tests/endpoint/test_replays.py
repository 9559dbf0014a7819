"""Recordings of real engines and of quirks, replayed as the engine behind a running endpoint."""

import asyncio
import json
from typing import Any

import pytest

from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import Judgement
from cheapgpu.core.verify import judge
from cheapgpu.endpoint.running import running_endpoint
from cheapgpu.endpoint.settings import ModelSettings
from tests.core.exchanges import EVENTS, JSON, exchange
from tests.endpoint.bridging import ENGINES, asked, entries, recorded, sent, text_of, usage_of
from tests.endpoint.live import ENVIRONMENT, Answer, Engine, ask, engine_at, settings, whole

#: Recorded waits are kept, but for those that are longer than this, in seconds.
_LONGEST_WAIT = 0.2


def replaying(answered: Exchange) -> Any:
    """A handler that sends an answer as it was recorded: head, reads and their times, end."""
    assert answered.head is not None
    head = answered.head
    lines = [f"HTTP/1.1 {head.status} Replayed"]
    chunked = False
    for name, value in head.headers:
        low = name.lower()
        if low == "transfer-encoding":
            chunked = True
        if low not in ("connection", "keep-alive", "content-length"):
            lines.append(f"{name}: {value}")
    if not chunked and answered.closed.how == "length":
        lines.append(f"content-length: {len(answered.body)}")
    start = "\r\n".join(lines).encode() + b"\r\n\r\n"

    async def handler(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        before = head.t
        for read in answered.reads:
            await asyncio.sleep(min(max(read.t - before, 0.0), _LONGEST_WAIT))
            before = read.t
            writer.write(b"%x\r\n%b\r\n" % (len(read.data), read.data) if chunked else read.data)
        if chunked and answered.ending == "whole":
            writer.write(b"0\r\n\r\n")
        else:
            writer.close()

    return handler


async def replayed(answered: Exchange, dialect: str) -> tuple[Answer, Judgement, int]:
    """What a buyer gets where an engine answers so, its judgement, and how often it was asked."""
    request = asked(answered)
    assert request is not None
    listed = json.dumps({"data": [{"id": request.model, "object": "model"}]}).encode()
    engine = Engine(replaying(answered), models=whole(listed))
    async with asyncio.timeout(30), engine_at(engine) as url:
        model = ModelSettings(id=request.model, ceiling=1_000_000)
        given = settings(url, dialect=dialect, silence=20.0, model=(model,))
        async with running_endpoint(given, ENVIRONMENT, lambda _: None) as endpoint:
            answer = await ask(endpoint.inference_url, sent(request))
    headers = EVENTS if "event-stream" in answer.fields["content-type"] else JSON
    got = exchange(answer.body, status=answer.status, headers=headers, sent=sent(request))
    return answer, judge(got), len(engine.seen)


def replayable(folder: str) -> list[dict[str, Any]]:
    """The recordings whose request an endpoint passes on."""
    return [entry for entry in entries(folder) if asked(recorded(folder, entry["file"]))]


def test_real_engines_leave_the_endpoint_complete_or_failed() -> None:
    """Normal ends are complete, with their text and usage; a cut, a refusal or a limit is not."""

    async def main() -> list[tuple[str, Exchange, Answer, Judgement, int]]:
        async def one(file: str) -> tuple[str, Exchange, Answer, Judgement, int]:
            answered = recorded("engines", file)
            return file, answered, *await replayed(answered, ENGINES[file.partition("/")[0]])

        return await asyncio.gather(*(one(entry["file"]) for entry in replayable("engines")))

    for file, answered, answer, judgement, times in asyncio.run(main()):
        assert answered.head is not None
        assert times == 1, file
        # A small request that the engine refuses for its own reasons breaks the status.
        assert set(judgement.broken) <= {"whole/status", "stream/status"}, (file, answer.body)
        normal = answered.head.status == 200 and answered.ending == "whole"
        if normal and not file.startswith("transformers"):
            assert (judgement.outcome, judgement.broken) == ("complete", []), (file, answer.body)
            assert text_of(answer.body) == text_of(answered.body), file
            assert usage_of(answer.body) == usage_of(answered.body), file
        else:
            assert judgement.outcome in ("failed", "refused"), file


@pytest.mark.parametrize("kind", ["must", "never", "may"])
def test_quirks_leave_the_endpoint_as_they_must(kind: str) -> None:
    """What must be bridged is complete, what never may be is an honest failure; asked once."""

    async def main() -> list[tuple[str, Answer, Judgement, int]]:
        async def one(file: str) -> tuple[str, Answer, Judgement, int]:
            return file, *await replayed(recorded("quirks", file), "openai")

        files = [entry["file"] for entry in replayable("quirks") if entry["bridge"] == kind]
        return await asyncio.gather(*(one(file) for file in files))

    results = asyncio.run(main())
    assert results
    for file, answer, judgement, times in results:
        assert times == 1, (file, answer.body)
        assert judgement.broken == [], (file, judgement.findings)
        outcomes = {"must": ("complete",), "never": ("failed", "refused")}
        allowed = outcomes.get(kind, ("complete", "failed", "refused"))
        assert judgement.outcome in allowed, (file, answer.body)
        if judgement.outcome == "refused":
            assert json.loads(answer.body)["error"]["code"], file
