"""`cheapgpu demo`: a real engine on this machine, asked real questions and judged."""

import asyncio
import contextlib
import shlex
import tempfile
import time
from collections.abc import AsyncIterator
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
from cheapgpu.cli.output import complain, say
from cheapgpu.endpoint.embedded import Engine, EngineOptions, running_engine
from cheapgpu.endpoint.models import smollm2_gguf
from cheapgpu.endpoint.tiny_model import write_tiny_model
from cheapgpu.report.run import Run
from cheapgpu.report.style import Style
from cheapgpu.report.terminal import terminal_report
from cheapgpu.wire.target import parse_target

_SMOLLM2: Final = "smollm2-135m-instruct"
_TINY: Final = "tiny-random"
#: One thread leaves the other core to the checker; llama.cpp's threads spin where cores are shared.
_THREADS: Final = 1
_SLOTS: Final = 2


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
    """Check a real engine on this machine, and show what it gets wrong.

    Nothing leaves this machine: the engine listens on a loopback port, with a key of its own, and
    ends with this command. Exits 0 once the verdict is shown, whatever it is.
    """
    detail = options.detail_of(verbose=verbose, quiet=False)
    style = options.style_of(color, ascii_only=ascii)
    path = output or unused_name(datetime.now().astimezone(), Path())
    finished: list[RunFinished] = []
    with tempfile.TemporaryDirectory(prefix="cheapgpu-") as folder:
        model = _model(gguf, Path(folder), tiny=tiny)
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(_demo(model, path, style, finished))
    if not finished:
        return INTERRUPTED
    if finished[0].stopped:
        complain(f"cheapgpu demo: {style.text(finished[0].stopped)}; what came is in {path}\n")
        return INTERRUPTED if finished[0].stopped == "interrupted" else NOT_ESTABLISHED
    run = Run(
        report=finished[0].report,
        exchanges=finished[0].recording.exchanges,
        target=finished[0].recording.target,
        source=str(path),
        about=(f"model {model[0]}", "llama.cpp, as it comes"),
        commands=(
            (f"cheapgpu verify {shlex.quote(str(path))}", "judges again, without the network"),
            ("cheapgpu check URL --model ID --key-env NAME", "asks your own endpoint the same"),
        ),
    )
    say("\n" + terminal_report(run, style, detail))
    return CONFORMS


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


async def _demo(
    model: tuple[str, Path], path: Path, style: Style, finished: list[RunFinished]
) -> None:
    """The stages of the demo, each on top of the one before; leaving ends all of them."""
    cancel_on_signals()
    async with _engine(*model) as engine:
        _tell("asking it what the profile asks of an endpoint, and judging the answers")
        plan = Plan(target=parse_target(engine.inference_url), model=model[0], key=engine.api_key)

        def keep(event: Event) -> None:
            if isinstance(event, RunFinished):
                finished.append(event)

        with RecordingFile(path, secrets_of(plan.key)) as recording:
            await run_plan(plan, recording, keep, progress(style))


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


def _tell(what: str) -> None:
    complain(f"demo: {what}\n")
