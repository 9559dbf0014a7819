"""Runs a GGUF file with llama.cpp's own HTTP server, in a child process on 127.0.0.1.

The engine comes from the extra `engine` (xllamacpp), which only the child imports: a crash in
native code ends the child, and is seen here as its exit. The child ends with its parent, however
the parent ends (see `engine_process`). It always asks for a key, which it gets through a pipe,
since a command line can be read by every user of the machine.
"""

import asyncio
import json
import os
import re
import secrets
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from cheapgpu.core.errors import CheapGPUError
from cheapgpu.endpoint.gguf import MAGIC

#: Seconds in which the engine must have loaded its model and be ready.
START_SECONDS = 120.0
#: Seconds from the order to end to SIGKILL, and from SIGKILL until the engine is given up.
STOP_SECONDS = 2.0

_ENGINE_FILE = Path(__file__).with_name("engine_process.py")
_HOST = "127.0.0.1"
#: Seconds in which a process that has reported a problem ends by itself.
_EXIT_SECONDS = 0.2
#: Seconds between two looks at /health.
_POLL_SECONDS = 0.02
#: Bytes of llama.cpp's messages that are kept, and how many of its last lines are shown.
_TAIL_BYTES = 8192
_TAIL_LINES = 6
#: Bytes of an answer to a question of our own; llama.cpp's are about 1 KiB.
_ANSWER_BYTES = 65_536

_INSTALL = "install it with: pip install xllamacpp"
_LIBRARIES = "it needs libgomp.so.1 and libstdc++.so.6 (Debian: apt install libgomp1 libstdc++6)"
_SIGNALS = {
    "SIGILL": "this processor lacks AVX2, FMA, F16C or BMI2, which xllamacpp's wheel needs; "
    "build xllamacpp from source, or serve the model elsewhere and give its --upstream",
    "SIGKILL": "often by the system for want of memory; try fewer slots, fewer context tokens or "
    "a smaller model",
    "SIGABRT": "a check inside llama.cpp failed",
    "SIGSEGV": "a fault in llama.cpp or its GPU driver",
    "SIGBUS": "often because the model file was changed or cut while it was in use",
}


class EngineError(CheapGPUError):
    """The engine could not be started or stopped; the message says why and what may help."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineOptions:
    """What the engine is to serve, and with how much of the machine.

    None leaves a choice to llama.cpp. Raises ValueError, naming the field, for a value that cannot
    be meant.
    """

    #: The model file.
    gguf: Path
    #: The name under which the engine serves it.
    model: str
    #: The bearer key that the engine asks for: printable ASCII without spaces.
    api_key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    #: TCP port on 127.0.0.1; 0 takes a free one.
    port: int = 0
    #: Tokens of one conversation, prompt and answer together; a model that was trained for fewer
    #: gets fewer, and llama.cpp rounds up to a multiple of 256 (see `Engine.context_tokens`).
    context_tokens: int = 4096
    #: Requests that are answered at the same time; more wait in the engine.
    slots: int = 1
    #: Threads that compute; one per core by default. They wait for each other in a loop, so on a
    #: small or busy machine fewer threads than cores are faster, and leave room for the endpoint.
    threads: int | None = None
    #: Layers of the model that go to the GPU.
    gpu_layers: int | None = None

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise ValueError("model: is empty; give the name under which the model is served")
        if not re.fullmatch("[!-~]+", self.api_key):
            raise ValueError("api_key: must be printable ASCII without spaces, and not empty")
        _require("port", self.port, least=0, most=65_535)
        _require("context_tokens", self.context_tokens, least=256, most=2**24)
        _require("slots", self.slots, least=1, most=256)
        _require("threads", self.threads, least=1, most=512)
        _require("gpu_layers", self.gpu_layers, least=0, most=2**16)


def _require(name: str, value: int | None, *, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise ValueError(f"{name}: is {value}; give a whole number from {least} to {most}")


class Engine:
    """A started engine: where it is, what it serves, and how it ended."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        options: EngineOptions,
        port: int,
        context_tokens: int,
    ) -> None:
        self._process = process
        self.model = options.model
        self.api_key = options.api_key
        self.slots = options.slots
        #: Tokens of one conversation, as the engine states them.
        self.context_tokens = context_tokens
        #: TCP port on 127.0.0.1.
        self.port = port
        self.inference_url = f"http://{_HOST}:{port}/v1/chat/completions"
        self.pid = process.pid

    @property
    def exit_status(self) -> int | None:
        """None while the engine runs; its exit status, or minus the signal that ended it."""
        return self._process.returncode

    async def exited(self) -> str:
        """Wait until the engine has ended, for whatever reason, and say how it did."""
        return _ending(await self._process.wait())

    async def stop(self, *, grace_seconds: float = STOP_SECONDS) -> None:
        """End the engine, if it still runs, with SIGKILL if it has not ended after `grace_seconds`.

        Requests that it is answering are cut. Raises EngineError if the system does not end it.
        """
        await _stop(self._process, grace_seconds)


@asynccontextmanager
async def running_engine(
    options: EngineOptions, *, start_seconds: float = START_SECONDS
) -> AsyncGenerator[Engine]:
    """An engine that is ready on entry and gone on exit; raises what start_engine raises."""
    engine = await start_engine(options, start_seconds=start_seconds)
    try:
        yield engine
    finally:
        await engine.stop()


async def start_engine(options: EngineOptions, *, start_seconds: float = START_SECONDS) -> Engine:
    """Start the engine and wait until it answers `GET /health` with 200.

    Raises EngineError if the file is no GGUF file, xllamacpp is missing, llama.cpp refuses the
    model, the engine ends early, or `start_seconds` pass. No process is left then, nor if the wait
    is cancelled.
    """
    _require_gguf(options.gguf)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # the engine's folder must not come before the libraries
        str(_ENGINE_FILE),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(),
    )
    messages = asyncio.create_task(_tail(process))
    try:
        async with asyncio.timeout(start_seconds):
            port = await _loaded(process, options, messages)
            context_tokens = await _ready(process, options, port)
    except TimeoutError:
        await _stop(process, 0)  # it reads no order while it loads a model
        raise EngineError(
            f"the engine was not ready after {start_seconds:g} s; allow it longer, "
            "or try a smaller model"
        ) from None
    except EngineError:
        await _ended(process, _EXIT_SECONDS)
        await _stop(process, 0)
        raise
    except BaseException:
        await _stop(process, 0)
        raise
    finally:
        messages.cancel()
    return Engine(process, options, port, context_tokens)


def _environment() -> dict[str, str]:
    """This process's own, without llama.cpp's options: all of those come through EngineOptions."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_")}
    # At a failed check llama.cpp would run a debugger, which takes seconds and prints arguments.
    return {**kept, "GGML_NO_BACKTRACE": "1"}


def _require_gguf(path: Path) -> None:
    if path.exists() and not path.is_file():  # opening a named pipe would wait for a writer
        raise EngineError(f"gguf: {path} is not a regular file; give the path of a GGUF file")
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise EngineError(f"gguf: {path}: {error.strerror}; give the path of a GGUF file") from None
    if magic != MAGIC:
        raise EngineError(
            f"gguf: {path} is not a GGUF file: its first four bytes are not GGUF; "
            "if it was downloaded, it may be a web page or a pointer file in its place"
        )


async def _loaded(
    process: asyncio.subprocess.Process, options: EngineOptions, messages: asyncio.Task[str]
) -> int:
    """Hand over the options, and wait for the port of the engine that has loaded its model."""
    stdin = cast("asyncio.StreamWriter", process.stdin)  # pipes, as start_engine asked
    stdout = cast("asyncio.StreamReader", process.stdout)
    settings = {
        "gguf": os.fspath(options.gguf.absolute()),
        "model": options.model,
        "api_key": options.api_key,
        "port": options.port,
        "context_tokens": options.context_tokens,
        "slots": options.slots,
        "threads": options.threads,
        "gpu_layers": options.gpu_layers,
    }
    with suppress(ConnectionError):  # its end is read below
        stdin.write(json.dumps(settings).encode() + b"\n")
        await stdin.drain()
    line = await stdout.readline()
    if not line:
        ending = _ending(await process.wait())
        raise EngineError(_with_messages(f"{ending} while it started", await messages))
    report = json.loads(line)
    match report.get("problem"):
        case None:
            address = urlsplit(str(report["address"]))
        case "not installed":
            raise EngineError(f"the engine, xllamacpp, is not installed; {_INSTALL}")
        case "cannot be loaded":
            detail = report["detail"]
            raise EngineError(f"the engine, xllamacpp, cannot be loaded: {detail}; {_LIBRARIES}")
        case _:
            said = await messages or report["detail"]
            raise EngineError(_with_messages(f"the engine could not serve {options.gguf}:", said))
    if address.hostname != _HOST or address.port is None:
        raise EngineError(f"the engine listens on {address.netloc}, not on {_HOST}; {_INSTALL}")
    return address.port


async def _ready(process: asyncio.subprocess.Process, options: EngineOptions, port: int) -> int:
    """Wait until the engine is healthy; the tokens of its context, for the model asked for."""
    while (await _get(port, "/health", options.api_key))[0] != 200:
        if process.returncode is not None:
            raise EngineError(f"{_ending(process.returncode)} while it started")
        await asyncio.sleep(_POLL_SECONDS)
    _, body = await _get(port, "/v1/models", options.api_key)
    try:
        (model,) = json.loads(body)["data"]
        name, context_tokens = str(model["id"]), int(model["meta"]["n_ctx"])
    except (ValueError, LookupError, TypeError):
        raise EngineError("the engine does not list its model as llama.cpp does") from None
    if name != options.model:
        raise EngineError(f"model: the engine serves {name!r} instead of {options.model!r}")
    return context_tokens


async def _get(port: int, path: str, api_key: str) -> tuple[int, bytes]:
    """Status and body of the engine's answer; status 0 if there was none.

    HTTP/1.0 keeps this small: the answer is not chunked, and ends with the connection.
    """
    request = f"GET {path} HTTP/1.0\r\nHost: {_HOST}\r\nAuthorization: Bearer {api_key}\r\n\r\n"
    answer = b""
    try:
        reader, writer = await asyncio.open_connection(_HOST, port)
        try:
            writer.write(request.encode())
            while len(answer) < _ANSWER_BYTES and (received := await reader.read(_ANSWER_BYTES)):
                answer += received
        finally:
            writer.close()
    except OSError:
        return 0, b""
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(maxsplit=2)
    return (int(words[1]) if len(words) > 1 and words[1].isdigit() else 0), body


async def _stop(process: asyncio.subprocess.Process, grace_seconds: float) -> None:
    """Close the engine's stdin, at which it ends by itself; kill it if it does not."""
    stdin = cast("asyncio.StreamWriter", process.stdin)
    stdin.close()
    with suppress(ConnectionError):  # the other end is gone
        await stdin.wait_closed()
    try:
        if not await _ended(process, grace_seconds):
            await _kill(process)
    except asyncio.CancelledError:
        await _kill(process)
        raise


async def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    if not await _ended(process, STOP_SECONDS):
        raise EngineError(f"the engine, process {process.pid}, cannot be killed; end it by hand")


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Wait until the process has ended, but no longer than this; whether it has."""
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        return False
    return True


async def _tail(process: asyncio.subprocess.Process) -> str:
    """The last of what the engine says on stderr until it ends."""
    stderr = cast("asyncio.StreamReader", process.stderr)
    tail = b""
    while received := await stderr.read(_TAIL_BYTES):
        tail = (tail + received)[-_TAIL_BYTES:]
    return tail.decode(errors="replace")


def _with_messages(problem: str, messages: str) -> str:
    """The problem, and llama.cpp's last lines made fit for a terminal."""
    lines = ["".join(c if c.isprintable() else " " for c in x) for x in messages.splitlines()]
    kept = [line.strip() for line in dict.fromkeys(lines) if line.strip()][-_TAIL_LINES:]
    return "\n  ".join([problem, *kept])


def _ending(status: int) -> str:
    """How a process with this exit status ended."""
    if status >= 0:
        return f"the engine ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    known = _SIGNALS.get(name)
    return f"the engine was ended by {name}" + (f" ({known})" if known else "")
