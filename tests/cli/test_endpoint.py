"""`cheapgpu endpoint`: refuses what cannot be meant, serves, tells, drains, and says no more."""

import asyncio
import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cheapgpu.core.examples import completion
from cheapgpu.endpoint.dialects import DIALECTS
from cheapgpu.endpoint.edits import EDITS
from cheapgpu.endpoint.tiny_model import write_tiny_model
from tests.check.servers import served, unused_port
from tests.cli.commands import PROGRAM, cheapgpu, environment
from tests.core.exchanges import STREAM_BODY
from tests.endpoint.live import (
    CHUNKED_HEAD,
    KEY,
    PLAIN,
    Answer,
    Engine,
    ask,
    engine_at,
    question,
    saying,
    streamed,
    whole,
)

MODEL = ("--model", "m1=engine-m1")
NOWHERE = "http://127.0.0.1:9/v1/chat/completions"
#: All that an endpoint needs; the port of its engine is one on which nothing listens.
ENOUGH = ("--upstream", NOWHERE, *MODEL, "--key-env", "KEYS")


class Served:
    """The command while it serves."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        #: Its first line: where it is.
        self.about: dict[str, Any] = json.loads(process.stdout.readline())
        self.url: str = self.about["inference_url"]
        self.told: list[str] = []
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self.told.extend(self.process.stderr)

    def wait_for(self, words: str) -> None:
        """Wait until it has told something."""
        deadline = time.monotonic() + 20
        while not any(words in line for line in self.told):
            assert time.monotonic() < deadline, self.told
            time.sleep(0.02)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, list[dict[str, Any]]]:
        """End it: its exit code, and its access log."""
        self.process.send_signal(number)
        assert self.process.stdout is not None
        lines = [json.loads(line) for line in self.process.stdout]
        code = self.process.wait(20)
        self._listening.join(5)
        return code, lines


@contextmanager
def serving(*arguments: str, **changes: str) -> Iterator[Served]:
    """The command, serving, with --json."""
    process = subprocess.Popen(
        [*PROGRAM, "endpoint", "--json", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment({"KEYS": KEY, "ENGINE_KEY": "a-key-of-the-engine", **changes}),
    )
    with process:
        try:
            yield Served(process)
        finally:
            process.kill()


@contextmanager
def before(engine: Engine, *arguments: str) -> Iterator[Served]:
    """The command before a scripted engine."""
    with (
        served(engine) as base,
        serving(
            "--upstream",
            f"{base}/v1/chat/completions",
            *MODEL,
            "--key-env",
            "KEYS",
            "--upstream-key-env",
            "ENGINE_KEY",
            *arguments,
        ) as command,
    ):
        yield command


def answers(url: str, *bodies: bytes, **how: Any) -> list[Answer]:
    """The answers to some questions."""

    async def main() -> list[Answer]:
        async with asyncio.timeout(20):
            return [await ask(url, body, **how) for body in bodies]

    return asyncio.run(main())


WRONG: list[tuple[str, tuple[str, ...]]] = [
    ("give either url or gguf", (*MODEL, "--key-env", "KEYS")),
    ("upstream.model: there is none", ("--upstream", NOWHERE, "--key-env", "KEYS")),
    ("there is no key", ("--upstream", NOWHERE, *MODEL)),
    ("the environment variable for the keys is not set", (*ENOUGH, "--key-env", "NO")),
    ("'vlm' is not known", (*ENOUGH, "--dialect", "vlm")),
    ("URL: it has no scheme", ("--upstream", "localhost", *MODEL, "--key-env", "KEYS")),
    ("holds no key", (*ENOUGH, "--upstream-key-env", "NO")),
    ("No such file", ("--gguf", "none.gguf", "--model", "m", "--key-env", "KEYS")),
    ("No such file", ("--config", "none.toml")),
    ("--config: excludes", ("--config", "none.toml", *MODEL)),
    ("'x' is not known", ("--explain", "--dialect", "x")),
    ("README.md is none", (*ENOUGH, "--tls-cert", "README.md", "--tls-key", "README.md")),
    ("tls_cert, tls_key", (*ENOUGH, "--tls-cert", "README.md")),
    ("access_log", (*ENOUGH, "--access-log", "none/x")),
]  # fmt: skip


@pytest.mark.parametrize(("says", "arguments"), WRONG)
def test_what_cannot_be_meant_is_refused(says: str, arguments: tuple[str, ...]) -> None:
    """Exit code 2, one message that names what is wrong; no key is repeated."""
    ended = cheapgpu("endpoint", *arguments, changes={"KEYS": KEY})
    assert ended.returncode == 2
    assert says in ended.stderr.decode()
    assert KEY not in ended.stderr.decode()
    assert ended.stdout == b""


def test_a_taken_port_is_refused() -> None:
    """The message names the address."""
    with before(Engine(saying())) as command:
        port = command.url.split(":")[2].split("/")[0]
        ended = cheapgpu("endpoint", *ENOUGH, "--port", port, changes={"KEYS": KEY})
    assert ended.returncode == 2
    assert f"127.0.0.1 port {port}" in ended.stderr.decode()


def test_an_engine_that_cannot_be_bridged_is_refused_at_start() -> None:
    """llama-cpp-python states no usage in streams: the reason, and what is possible."""
    models = whole(b'{"data":[{"id":"engine-m1","owned_by":"me"}]}')
    with served(Engine(saying(), models=models)) as base:
        arguments = ("--upstream", f"{base}/v1/chat/completions", *MODEL, "--key-env", "KEYS")
        ended = cheapgpu("endpoint", *arguments, "--port", "0", changes={"KEYS": KEY})
    assert ended.returncode == 2
    assert "never report usage" in ended.stderr.decode()
    assert "--plain-only" in ended.stderr.decode()
    engine = Engine(saying(whole(completion())), models=models)
    with before(engine, "--plain-only") as command:
        plain, stream = answers(command.url, PLAIN, question())
    assert (plain.status, stream.status) == (200, 400)


def test_settings_can_be_checked_alone(tmp_path: Path) -> None:
    """--check-config reads the file and the keys, and serves nothing."""
    file = tmp_path / "endpoint.toml"
    file.write_text(
        f'key_env = ["KEYS"]\n[[upstream]]\nurl = "{NOWHERE}"\n[[upstream.model]]\nid = "m1"\n'
    )
    right = cheapgpu("endpoint", "--config", str(file), "--check-config", changes={"KEYS": KEY})
    assert (right.returncode, right.stdout) == (0, b"")
    assert b"in order" in right.stderr
    wrong = cheapgpu("endpoint", "--config", str(file), "--check-config")
    assert wrong.returncode == 2


def test_edits_and_dialects_are_explained() -> None:
    """--explain lists every edit and every dialect; one dialect, and JSON, if asked."""
    shown = cheapgpu("endpoint", "--explain").stdout.decode()
    assert all(f"  {edit} " in shown and sentence in shown for edit, sentence in EDITS.items())
    assert all(f"{name}: {each.title}" in shown for name, each in DIALECTS.items())
    one = cheapgpu("endpoint", "--explain", "--dialect", "tgi").stdout.decode()
    assert "its finish reason eos_token is stop" in one
    assert "vLLM" not in one
    document = json.loads(cheapgpu("endpoint", "--explain", "--json").stdout)
    assert document["edits"] == EDITS
    assert [each["name"] for each in document["dialects"]] == list(DIALECTS)


def test_it_serves_tells_and_logs_without_content() -> None:
    """It says where it is and what it found; the log has a line for each request, and no text."""
    with before(Engine(saying(streamed(STREAM_BODY))), "--metrics-port", "0") as command:
        command.wait_for("vLLM, ready")
        assert command.about["models"] == ["m1"]
        stream, refused = answers(command.url, question(), question(temperature=1))
        (keyless,) = answers(command.url, PLAIN, key="a-wrong-key")
        assert [stream.status, refused.status, keyless.status] == [200, 400, 401]
        metrics = answers(command.about["metrics_url"], b"", method="GET", key=None)
        code, log = command.stop()
    assert code == 0
    assert b"answers_total" in metrics[0].body
    assert [(line["status"], line["outcome"]) for line in log] == [
        (200, "complete"),
        (400, "refused"),
        (401, "refused"),
    ]
    assert log[0]["key"] == "keys-1"
    assert log[0]["completion_tokens"] > 0
    assert log[0]["edits"]["identity"] > 0
    assert (log[1]["why"], log[2]["why"]) == ("temperature", "invalid_api_key")
    everything = json.dumps(log) + "".join(command.told) + metrics[0].body.decode()
    assert not re.search(r"rain|wrong-key|a-key-of", everything, re.IGNORECASE)


def test_sigterm_lets_an_answer_end() -> None:
    """Nothing new is taken; what is in progress ends whole; then it exits with 0."""
    slow = saying(CHUNKED_HEAD, 0.5, streamed(STREAM_BODY)[len(CHUNKED_HEAD) :])
    with before(Engine(slow)) as command:

        async def main() -> Answer:
            asking = asyncio.create_task(ask(command.url, question()))
            await asyncio.sleep(0.2)
            command.process.send_signal(signal.SIGTERM)
            return await asking

        answer = asyncio.run(main())
        command.wait_for("all answers have ended")
        assert command.process.wait(20) == 0
    assert answer.body.endswith(b"data: [DONE]\n\n")


def test_a_second_signal_ends_it_at_once() -> None:
    """Answers in progress are cut, and say so; it still exits with 0."""
    with before(Engine(saying(CHUNKED_HEAD, 60.0)), "--heartbeat", "0.1") as command:

        async def main() -> Answer:
            asking = asyncio.create_task(ask(command.url, question()))
            await asyncio.sleep(0.4)
            command.process.send_signal(signal.SIGINT)
            await asyncio.sleep(0.1)
            command.process.send_signal(signal.SIGINT)
            return await asking

        answer = asyncio.run(main())
        assert command.process.wait(20) == 0
    assert b'"code":"stopping"' in answer.body


def test_sighup_reads_keys_again(tmp_path: Path) -> None:
    """Rotation: the new key is valid at once; a file that is wrong is told, and changes nothing."""
    keys = tmp_path / "keys"
    keys.write_text("alice the-first-key\n")
    with before(Engine(saying(whole(completion()))), "--key-file", str(keys)) as command:
        assert answers(command.url, PLAIN, key="the-first-key")[0].status == 200
        keys.write_text("bob the-second-key\n")
        command.process.send_signal(signal.SIGHUP)
        command.wait_for("keys were read again: 2 are valid")
        assert answers(command.url, PLAIN, key="the-second-key")[0].status == 200
        assert answers(command.url, PLAIN, key="the-first-key")[0].status == 401
        keys.write_text("")
        command.process.send_signal(signal.SIGHUP)
        command.wait_for("keys were not read again")
        assert answers(command.url, PLAIN, key="the-second-key")[0].status == 200
        _, log = command.stop()
    assert [line["key"] for line in log if line["status"] == 200] == ["alice", "bob", "bob"]


def test_it_waits_for_an_engine_that_is_not_there_yet() -> None:
    """It starts, says why it is not ready, and serves once the engine answers."""
    port = unused_port()
    upstream = f"http://127.0.0.1:{port}/v1/chat/completions"
    engine = Engine(saying(whole(completion())))

    async def main(command: Served) -> tuple[int, int]:
        before_it = await ask(command.url, PLAIN)
        async with engine_at(engine, port):
            await asyncio.to_thread(command.wait_for, "vLLM, ready")
            return before_it.status, (await ask(command.url, PLAIN)).status

    with serving("--upstream", upstream, *MODEL, "--key-env", "KEYS") as command:
        command.wait_for("not ready: the connection is refused")
        assert asyncio.run(main(command)) == (503, 200)


def test_it_runs_a_model_file(tmp_path: Path) -> None:
    """--gguf: llama.cpp starts, answers, and ends with the command, however that ends."""
    gguf = tmp_path / "tiny.gguf"
    write_tiny_model(gguf)
    arguments = ("--gguf", str(gguf), "--model", "tiny", "--key-env", "KEYS", "--threads", "1")
    with serving(*arguments) as command:
        command.wait_for("llama.cpp server, ready")
        (answer,) = answers(command.url, question(model="tiny", max_completion_tokens=8))
        assert answer.body.endswith(b"data: [DONE]\n\n")
        children = Path(f"/proc/{command.process.pid}/task/{command.process.pid}/children")
        engine = int(children.read_text().split()[0])
        command.process.kill()
        command.process.wait(20)
        deadline = time.monotonic() + 10
        while Path(f"/proc/{engine}/exe").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not Path(f"/proc/{engine}/exe").exists()
