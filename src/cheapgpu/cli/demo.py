"""`cheapgpu demo`: a real engine on this machine, judged as it comes and behind the endpoint."""

import asyncio
import contextlib
import secrets
import shlex
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from cheapgpu.check.events import Event, RunFinished
from cheapgpu.check.masking import secrets_of
from cheapgpu.check.plan import Plan
from cheapgpu.check.recording_file import RecordingFile, unused_name
from cheapgpu.check.run import run as run_plan
from cheapgpu.cli import options
from cheapgpu.cli.check import cancel_on_signals, progress
from cheapgpu.cli.exit_codes import CONFORMS, INTERRUPTED, NOT_ESTABLISHED
from cheapgpu.cli.options import OptionError
from cheapgpu.cli.output import complain, say
from cheapgpu.endpoint.embedded import Engine, EngineOptions, running_engine
from cheapgpu.endpoint.models import smollm2_gguf
from cheapgpu.endpoint.running import running_endpoint
from cheapgpu.endpoint.settings import ModelSettings, Settings, UpstreamSettings
from cheapgpu.endpoint.tiny_model import write_tiny_model
from cheapgpu.report.run import Run
from cheapgpu.report.side_by_side import side_by_side
from cheapgpu.report.style import Style
from cheapgpu.report.terminal import Detail, terminal_report
from cheapgpu.wire.target import parse_target

_SMOLLM2: Final = "smollm2-135m-instruct"
_TINY: Final = "tiny-random"
#: One thread leaves the other core to the checker; llama.cpp's threads spin where cores are shared.
_THREADS: Final = 1
_SLOTS: Final = 2
#: The largest max_completion_tokens that the endpoint admits.
_CEILING: Final = 16_384
#: What is judged, in this order.
_STAGES: Final = ("llama.cpp, as it comes", "behind cheapgpu endpoint")


def demo(
    *,
    gguf: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A model of your own instead of the small one."),
    ] = None,
    tiny: Annotated[
        bool, typer.Option("--tiny", help="Make a model on the spot; its text is noise.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="RUN", help="The recording to write: a new file."),
    ] = None,
    verbose: options.Verbose = False,
    color: options.ColourOption = "auto",
    ascii: options.Ascii = False,  # noqa: A002 -- the option's name
) -> int:
    """Check a real engine on this machine, as it comes and behind `cheapgpu endpoint`.

    Nothing leaves this machine: engine and endpoint listen on loopback ports, with keys of their
    own, and end with this command. Exits 0 once the verdicts are shown, whatever they are.
    """
    detail = options.detail_of(verbose=verbose, quiet=False)
    style = options.style_of(color, ascii_only=ascii)
    path = output or unused_name(datetime.now().astimezone(), Path())
    if path.with_name(f"{path.stem}-endpoint.jsonl").exists():
        raise OptionError(f"-o: {path.stem}-endpoint.jsonl exists already; give another name")
    show = _Show(style=style, path=path)
    with tempfile.TemporaryDirectory(prefix="cheapgpu-") as folder:
        show.model, file = _model(gguf, Path(folder), tiny=tiny)
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(_demo(file, show))
    stopped = [finished.stopped for _, finished in show.finished if finished.stopped]
    if len(show.finished) < len(_STAGES) or stopped:
        why = style.text(stopped[0]) if stopped else "interrupted"
        complain(f"cheapgpu demo: {why}; what came is in {path}\n")
        return INTERRUPTED if why == "interrupted" else NOT_ESTABLISHED
    say("\n" + _report(show, detail))
    return CONFORMS


@dataclass(slots=True, kw_only=True)
class _Show:
    """What the demo has to show in the end."""

    style: Style
    #: The recording of the engine as it comes; that of the endpoint is beside it.
    path: Path
    model: str = ""
    finished: list[tuple[Path, RunFinished]] = field(default_factory=list)


def _report(show: _Show, detail: Detail) -> str:
    """The engine's report, then both runs next to each other."""
    raw, bridged = (
        Run(
            report=finished.report,
            exchanges=finished.recording.exchanges,
            target=finished.recording.target,
            source=str(path),
            about=(f"model {show.model}", stage),
        )
        for (path, finished), stage in zip(show.finished, _STAGES, strict=True)
    )
    text = terminal_report(raw, show.style, detail)
    if bridged.report.verdict != "conforms":
        text += "\n" + terminal_report(bridged, show.style, detail)
    text += "\n" + side_by_side(list(zip(_STAGES, (raw, bridged), strict=True)), show.style)
    files = " ".join(shlex.quote(run.source) for run in (raw, bridged))
    lines = [
        "",
        "Both in a browser, byte by byte:",
        f"  cheapgpu report {files} --html demo.html",
        "The same for your own endpoint:",
        "  cheapgpu check URL --model ID --key-env NAME",
        "The endpoint before your own engine:",
        "  cheapgpu endpoint --upstream URL --model ID --key-env NAME",
    ]
    return text + "".join(f"{show.style.text(line)}\n" for line in lines)


def _model(gguf: Path | None, folder: Path, *, tiny: bool) -> tuple[str, Path]:
    """The name and file of the model: the given one, the small one, or one made here."""
    if gguf is not None:
        return gguf.stem, gguf
    found = None if tiny else smollm2_gguf()
    if found is not None:
        return _SMOLLM2, found
    made = folder / f"{_TINY}.gguf"
    write_tiny_model(made)
    return _TINY, made


async def _demo(gguf: Path, show: _Show) -> None:
    """The stages of the demo, each on top of the one before; leaving ends all of them."""
    cancel_on_signals()
    async with _engine(show.model, gguf) as engine:
        _tell("asking it what the profile asks of an endpoint, and judging the answers")
        plan = Plan(target=parse_target(engine.inference_url), model=show.model, key=engine.api_key)
        await _check(plan, show.path, show)
        async with _endpoint(engine, show.model) as (url, key):
            _tell(f"asking the same of `cheapgpu endpoint` before it, at {url}")
            plan = Plan(target=parse_target(url), model=show.model, key=key, ceiling=_CEILING)
            await _check(plan, show.path.with_name(f"{show.path.stem}-endpoint.jsonl"), show)


async def _check(plan: Plan, path: Path, show: _Show) -> None:
    """Carry out one run, and keep what came of it."""

    def keep(event: Event) -> None:
        if isinstance(event, RunFinished):
            show.finished.append((path, event))

    with RecordingFile(path, secrets_of(plan.key)) as recording:
        await run_plan(plan, recording, keep, progress(show.style))


@contextlib.asynccontextmanager
async def _engine(name: str, gguf: Path) -> AsyncIterator[Engine]:
    """A real engine with the model, for as long as the stage above it needs one."""
    _tell(f"starting llama.cpp with {name}")
    began = time.perf_counter()
    chosen = EngineOptions(gguf=gguf, model=name, threads=_THREADS, slots=_SLOTS)
    async with running_engine(chosen) as engine:
        seconds = time.perf_counter() - began
        _tell(f"it is ready after {seconds:.1f} s at {engine.inference_url}")
        yield engine


@contextlib.asynccontextmanager
async def _endpoint(engine: Engine, model: str) -> AsyncIterator[tuple[str, str]]:
    """The endpoint before the engine: its inference_url, and a key for it."""
    environment = {"ENGINE": engine.api_key, "BUYERS": secrets.token_urlsafe(24)}
    upstream = UpstreamSettings(
        url=engine.inference_url,
        key_env="ENGINE",
        model=(ModelSettings(id=model, ceiling=_CEILING),),
    )
    settings = Settings(port=0, key_env=("BUYERS",), access_log="", upstream=(upstream,))
    async with running_endpoint(settings, environment, _tell) as running:
        yield running.inference_url, environment["BUYERS"]


def _tell(what: str) -> None:
    complain(f"demo: {what}\n")
