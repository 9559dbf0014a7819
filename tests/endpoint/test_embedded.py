"""The engine as it really is: llama.cpp's server in a child process, serving the tiny model."""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cheapgpu.endpoint import embedded
from cheapgpu.endpoint.embedded import Engine, EngineError, EngineOptions, start_engine
from cheapgpu.endpoint.tiny_model import STOP_WORD, tiny_model, write_tiny_model

ENGINE_FILE = Path(embedded.__file__).with_name("engine_process.py")

#: A program that starts the engine, says where it is, and waits to be ended.
PARENT = """
import asyncio, sys
from pathlib import Path
from cheapgpu.endpoint.embedded import EngineOptions, running_engine

async def main():
    async with running_engine(EngineOptions(gguf=Path(sys.argv[1]), model="tiny")) as engine:
        print(engine.inference_url, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""

#: A program that cancels a start while the engine loads, and looks for children of its own.
CANCELLED = """
import asyncio, os, sys
from pathlib import Path
from cheapgpu.endpoint.embedded import EngineOptions, start_engine

def has_child():
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True

async def main():
    start = asyncio.create_task(start_engine(EngineOptions(gguf=Path(sys.argv[1]), model="tiny")))
    while not has_child():
        await asyncio.sleep(0)
    start.cancel()
    try:
        await start
    except asyncio.CancelledError:
        pass

asyncio.run(main())
if not has_child():
    print("no child is left")
"""

#: A server that is not llama.cpp, and does not end when its stdin does; see stand_in.
STAND_IN = """
import http.server, json, os, sys

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        health = self.path == "/health"
        self.send_response(HEALTH.pop(0) if health else 200)
        self.end_headers()
        self.wfile.write(b"" if health else MODELS)

    def log_message(self, *words):
        pass

sys.stdin.readline()
server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
print(json.dumps({"address": ADDRESS or f"http://127.0.0.1:{server.server_port}"}), flush=True)
if not ENDS:
    server.serve_forever()
"""


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, written once."""
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_tiny_model(path)
    return path


@pytest.fixture(scope="module")
def engine(gguf: Path) -> Iterator[Engine]:
    """An engine that several tests ask."""
    # One thread is the fastest for a model this small: more of them wait for each other.
    options = EngineOptions(gguf=gguf, model="tiny", context_tokens=2048, slots=2, threads=1)
    with asyncio.Runner() as runner:
        engine = runner.run(start_engine(options))
        yield engine
        runner.run(engine.stop())


def post(url: str, key: str, **fields: object) -> tuple[int, bytes]:
    """Status and body of one chat completion."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    body = {"model": "tiny", "messages": [{"role": "user", "content": "Hello."}], **fields}
    try:
        connection.request("POST", parts.path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def events(body: bytes) -> list[str]:
    """The data of each event of a stream, as llama.cpp writes it."""
    return [line.removeprefix("data: ") for line in body.decode().split("\n\n") if line]


def listens(url: str) -> bool:
    """Whether anything accepts connections there."""
    parts = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((str(parts.hostname), int(parts.port or 0))) == 0


def gone(url: str) -> bool:
    """Whether nothing listens there any more, after at most 10 s."""
    end = time.monotonic() + 10
    while listens(url) and time.monotonic() < end:
        time.sleep(0.01)
    return not listens(url)


def command_line(pid: int) -> str:
    """The arguments of a process, as every user of the machine can read them."""
    kernel = Path(f"/proc/{pid}/cmdline")
    if kernel.exists():
        return kernel.read_bytes().replace(b"\0", b" ").decode()
    return subprocess.check_output(["ps", "-ww", "-o", "args=", "-p", str(pid)], text=True)


def stand_in(
    *,
    health: tuple[int, ...] = (200,),
    models: str = '{"data": [{"id": "tiny", "meta": {"n_ctx": 512}}]}',
    address: str = "",
    ends: bool = False,
) -> str:
    """The program of a server with these answers, this address, and perhaps no patience."""
    facts = ([*health], models.encode(), address, ends)
    return f"HEALTH, MODELS, ADDRESS, ENDS = {facts!r}{STAND_IN}"


def run_instead(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this program run in place of the engine's process."""
    file = folder / "program.py"
    file.write_text(program)
    monkeypatch.setattr(embedded, "_ENGINE_FILE", file)


def refusal(options: EngineOptions, start_seconds: float = 60) -> str:
    """The message with which the engine does not start."""
    with pytest.raises(EngineError) as raised:
        asyncio.run(start_engine(options, start_seconds=start_seconds))
    return str(raised.value)


def test_plain_answer_runs_to_its_limit(engine: Engine) -> None:
    """A plain request gets as many tokens as it allows, and the finish reason says so."""
    status, body = post(engine.inference_url, engine.api_key, max_completion_tokens=300)
    answer = json.loads(body)
    assert status == 200
    assert answer["model"] == "tiny"
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 300


def test_answer_is_text_of_short_sentences(engine: Engine) -> None:
    """The tiny model writes words and full stops, whatever the prompt is."""
    _, body = post(engine.inference_url, engine.api_key, max_completion_tokens=256)
    text = json.loads(body)["choices"][0]["message"]["content"]
    sentences = text.split(". ")
    assert len(sentences) > 25
    assert all(re.fullmatch(r"[A-Z]\w+( \w+){4,5}", sentence) for sentence in sentences[:-1])


def test_stop_word_ends_the_answer_at_its_first_full_stop(engine: Engine) -> None:
    """With the stop word in the prompt the answer is one sentence, finished by the model itself."""
    messages = [{"role": "user", "content": f"Tell me {STOP_WORD}, {'please ' * 150}what you do."}]
    status, body = post(
        engine.inference_url, engine.api_key, messages=messages, max_completion_tokens=256
    )
    choice = json.loads(body)["choices"][0]
    assert status == 200
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"].endswith(".")
    assert choice["message"]["content"].count(".") == 1


def test_streamed_answer_has_an_event_per_token(engine: Engine) -> None:
    """A stream of 128 tokens has 128 content events, then its finish, its usage and its end."""
    status, body = post(
        engine.inference_url,
        engine.api_key,
        max_completion_tokens=128,
        stream=True,
        stream_options={"include_usage": True},
    )
    *chunks, end = events(body)
    decoded = [json.loads(chunk) for chunk in chunks]
    choices = [choice for chunk in decoded for choice in chunk["choices"]]
    assert status == 200
    assert end == "[DONE]"
    assert len([choice for choice in choices if choice["delta"].get("content")]) == 128
    assert choices[-1]["finish_reason"] == "length"
    assert decoded[-1]["usage"]["completion_tokens"] == 128


def test_wrong_key_is_refused(engine: Engine) -> None:
    """A request without the engine's key gets 401 and no answer."""
    assert post(engine.inference_url, "wrong")[0] == 401


def test_engine_says_what_it_serves(engine: Engine) -> None:
    """The engine's own account: running, on 127.0.0.1, with the context of one slot."""
    assert engine.exit_status is None
    assert engine.inference_url.startswith("http://127.0.0.1:")
    assert (engine.model, engine.slots, engine.context_tokens) == ("tiny", 2, 2048)


def test_key_is_neither_argument_nor_shown(engine: Engine, gguf: Path) -> None:
    """The key stands in no command line and in no representation of the options."""
    command = command_line(engine.pid)
    assert str(ENGINE_FILE) in command
    assert engine.api_key not in command
    assert "k3y" not in repr(EngineOptions(gguf=gguf, model="tiny", api_key="k3y"))


def test_stop_ends_the_process_and_frees_its_port(gguf: Path) -> None:
    """After stop nothing listens, the exit is known, a second stop is harmless."""

    async def run() -> Engine:
        engine = await start_engine(EngineOptions(gguf=gguf, model="tiny"))
        assert listens(engine.inference_url)
        await engine.stop()
        await engine.stop()
        return engine

    engine = asyncio.run(run())
    assert not listens(engine.inference_url)
    assert engine.exit_status == -signal.SIGTERM


def test_exception_in_the_block_ends_the_engine(gguf: Path) -> None:
    """An engine started for a block is gone when the block is left by an exception."""
    urls: list[str] = []

    async def run() -> None:
        async with embedded.running_engine(EngineOptions(gguf=gguf, model="tiny")) as engine:
            urls.append(engine.inference_url)
            raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(run())
    assert not listens(urls[0])


def test_engine_on_a_chosen_port_can_be_started_again(gguf: Path) -> None:
    """A port that is named is the port used, and is free for the next engine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])

    async def run() -> str:
        options = EngineOptions(gguf=gguf, model="tiny", port=port)
        async with embedded.running_engine(options) as engine:
            return engine.inference_url

    assert [asyncio.run(run()) for _ in range(2)] == [
        f"http://127.0.0.1:{port}/v1/chat/completions"
    ] * 2


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, "memory"), (signal.SIGILL, "AVX2")], ids=["kill", "ill"]
)
def test_crash_is_seen_and_named(gguf: Path, number: signal.Signals, words: str) -> None:
    """When the engine is ended by a signal, exited() returns and names it and a likely cause."""

    async def run() -> tuple[str, int | None]:
        async with embedded.running_engine(EngineOptions(gguf=gguf, model="tiny")) as engine:
            os.kill(engine.pid, number)
            return await engine.exited(), engine.exit_status

    ending, status = asyncio.run(run())
    assert number.name in ending
    assert words in ending
    assert status == -number


@pytest.mark.parametrize(
    ("number", "group"),
    [(signal.SIGKILL, False), (signal.SIGTERM, False), (signal.SIGINT, True)],
    ids=["parent killed", "parent terminated", "Ctrl-C"],
)
def test_engine_ends_with_its_parent(gguf: Path, number: signal.Signals, *, group: bool) -> None:
    """However the parent is ended, its engine stops listening, and the parent does not hang."""
    # A process that is killed would leave half of what coverage writes.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(gguf)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        url = parent.stdout.readline().strip()
        assert listens(url)
        if group:
            os.killpg(parent.pid, number)
        else:
            parent.send_signal(number)
        parent.wait(timeout=30)
    assert gone(url)


def test_engine_does_not_start_for_a_parent_that_has_gone(gguf: Path) -> None:
    """Options that are followed by the end of stdin, or cut, load no model and report nothing."""
    for line in (f'{{"gguf": "{gguf}"}}\n', '{"gguf": "'):
        process = subprocess.run(
            [sys.executable, "-P", str(ENGINE_FILE)],
            input=line.encode(),
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert process.returncode == 1
        assert process.stdout == b""


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A file that is not there is an error with its path and what to give instead."""
    message = refusal(EngineOptions(gguf=tmp_path / "none.gguf", model="tiny"))
    assert f"{tmp_path / 'none.gguf'}: No such file" in message
    assert "give the path of a GGUF file" in message


def test_named_pipe_is_refused_at_once(tmp_path: Path) -> None:
    """A path that is not a regular file is refused, and never waited for."""
    os.mkfifo(tmp_path / "pipe.gguf")
    message = refusal(EngineOptions(gguf=tmp_path / "pipe.gguf", model="tiny"))
    assert "is not a regular file" in message


def test_junk_file_is_refused(tmp_path: Path) -> None:
    """A file that is not GGUF is refused before any process is started."""
    path = tmp_path / "page.gguf"
    path.write_text("<!doctype html>")
    assert "is not a GGUF file" in refusal(EngineOptions(gguf=path, model="tiny"))


def test_cut_file_is_explained_in_the_words_of_llama_cpp(tmp_path: Path) -> None:
    """A GGUF file without its last weights is refused with llama.cpp's own reason."""
    path = tmp_path / "cut.gguf"
    path.write_bytes(tiny_model()[:200_000])
    message = refusal(EngineOptions(gguf=path, model="tiny"))
    assert f"could not serve {path}" in message
    assert "not within the file bounds" in message


def test_port_in_use_is_refused(engine: Engine, gguf: Path) -> None:
    """A second engine does not share the port of the first."""
    port = urlsplit(engine.inference_url).port
    message = refusal(EngineOptions(gguf=gguf, model="tiny", port=port or 0))
    assert "could not serve" in message


def test_start_has_a_limit(gguf: Path) -> None:
    """An engine that is not ready in time is ended, and the message says how long that was."""
    message = refusal(EngineOptions(gguf=gguf, model="tiny"), start_seconds=0.001)
    assert "not ready after 0.001 s" in message


def test_cancelled_start_leaves_nothing(gguf: Path) -> None:
    """A start that is cancelled ends its process before the cancellation goes on."""
    program = subprocess.run(
        [sys.executable, "-c", CANCELLED, str(gguf)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert program.stdout == "no child is left\n"


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("sys.modules['xllamacpp'] = None", "not installed; install it with: pip install"),
        ("sys.path.insert(0, sys.path[-1])", "cannot be loaded: libgomp.so.1: not found; it needs"),
        ("sys.exit(3)", "ended with exit status 3 while it started"),
        ("os.kill(os.getpid(), signal.SIGUSR1)", "ended by SIGUSR1 while it started"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 9)", "ended by signal 43 while it started"),
        ("os.write(2, b'no \\x1b[31m luck'); os.abort()", "while it started\n  no  [31m luck"),
    ],
    ids=["absent", "broken", "exit", "signal", "nameless signal", "last words"],
)
def test_engine_that_cannot_run_is_explained(
    gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, message: str
) -> None:
    """What keeps the engine's process from serving is said, without control characters."""
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('libgomp.so.1: not found')\n")
    program = (
        "import os, runpy, signal, sys\n"
        f"sys.path.append({str(tmp_path)!r})\n"
        f"{before}\n"
        f"runpy.run_path({str(ENGINE_FILE)!r}, run_name='__main__')\n"
    )
    run_instead(program, tmp_path, monkeypatch)
    assert message in refusal(EngineOptions(gguf=gguf, model="tiny"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"models": '{"data": [{"id": "big", "meta": {"n_ctx": 1}}]}'}, "serves 'big' instead"),
        ({"models": '{"data": []}'}, "does not list its model"),
        ({"models": "nothing"}, "does not list its model"),
        ({"address": "http://0.0.0.0:80"}, "listens on 0.0.0.0:80, not on 127.0.0.1"),
        ({"ends": True}, "ended with exit status 0 while it started"),
    ],
    ids=["other model", "no model", "no list", "other host", "ended"],
)
def test_engine_that_is_not_what_was_asked_for_is_refused(
    gguf: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, object],
    message: str,
) -> None:
    """An engine that serves another model, elsewhere, or no longer, is an error, not an engine."""
    run_instead(stand_in(**settings), tmp_path, monkeypatch)  # type: ignore[arg-type]
    assert message in refusal(EngineOptions(gguf=gguf, model="tiny"))


def test_engine_is_ready_only_when_healthy(
    gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A /health that is not 200 is asked again; an engine that ignores its end is killed."""
    run_instead(stand_in(health=(503, 500, 200)), tmp_path, monkeypatch)

    async def run() -> Engine:
        engine = await start_engine(EngineOptions(gguf=gguf, model="tiny"))
        await engine.stop(grace_seconds=0.05)
        return engine

    engine = asyncio.run(run())
    assert engine.context_tokens == 512
    assert engine.exit_status == -signal.SIGKILL


def test_cancelled_stop_still_ends_the_engine(
    gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop that is cancelled while it waits kills the engine before the cancellation goes on."""
    run_instead(stand_in(), tmp_path, monkeypatch)

    async def run() -> Engine:
        engine = await start_engine(EngineOptions(gguf=gguf, model="tiny"))
        stop = asyncio.create_task(engine.stop(grace_seconds=60))
        await asyncio.sleep(0.05)
        stop.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stop
        return engine

    assert asyncio.run(run()).exit_status == -signal.SIGKILL


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": " "},
        {"api_key": ""},
        {"api_key": "two words"},
        {"api_key": "line\r\nbreak"},
        {"port": 65_536},
        {"context_tokens": 255},
        {"slots": 0},
        {"threads": 0},
        {"gpu_layers": -1},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_option_that_cannot_be_meant_is_refused(gguf: Path, wrong: dict[str, object]) -> None:
    """Each option out of its range is an error that begins with the option's name."""
    (name,) = wrong
    with pytest.raises(ValueError, match=f"^{name}: "):
        EngineOptions(**{"gguf": gguf, "model": "tiny", **wrong})  # type: ignore[arg-type]
