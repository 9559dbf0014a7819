"""`cheapgpu check`: asks an endpoint, judges its answers, and keeps the recording."""

import asyncio
import shlex
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from cheapgpu.check.cases import STREAMS, catalogue
from cheapgpu.check.events import CaseFinished, CaseStarted, Event, Listener, RunFinished
from cheapgpu.check.forecast import needed
from cheapgpu.check.limits import REQUESTS_AT_ONCE, RUN_SECONDS, RUN_TOKENS, Budget, Limits
from cheapgpu.check.plan import Plan
from cheapgpu.check.recording_file import RecordingFile, unused_name
from cheapgpu.check.run import run as run_plan
from cheapgpu.cli import options
from cheapgpu.cli.dry_run import dry_run, dry_run_json
from cheapgpu.cli.exit_codes import CONFORMS, INTERRUPTED, exit_code
from cheapgpu.cli.options import OptionError
from cheapgpu.cli.output import complain, say
from cheapgpu.cli.remarks import remarks
from cheapgpu.cli.report_files import prints_report, report_files, write_reports
from cheapgpu.cli.selection import decided, terms_of
from cheapgpu.cli.tokenizer import counter, tokenizer_argument
from cheapgpu.core.errors import CheapGPUError
from cheapgpu.core.limits import FIRST_BYTE_SECONDS
from cheapgpu.report.document import document, to_json
from cheapgpu.report.run import Run
from cheapgpu.report.style import Style
from cheapgpu.report.terminal import terminal_report
from cheapgpu.wire.target import parse_target, trusted

#: A file with more bytes than this holds no key.
_KEY_BYTES: Final = 8192


def check(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The full inference_url, used as it stands.")
    ],
    *,
    model: Annotated[str, typer.Option(metavar="ID", help="The supplier model id to ask for.")],
    key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The environment variable with the key.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with the key and nothing else.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="RUN",
            help="The recording to write: a new file (run-….jsonl).",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long an answer may take to begin.")
    ] = FIRST_BYTE_SECONDS,
    budget: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long the whole run may take.")
    ] = RUN_SECONDS,
    tokens: Annotated[
        int, typer.Option(metavar="N", help="The completion tokens that the run may ask for.")
    ] = RUN_TOKENS,
    ceiling: Annotated[
        int | None,
        typer.Option(metavar="N", help="The largest max_completion_tokens that is admitted."),
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The authorities to trust instead of the system's (PEM)."
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K:V",
            help="A header field to send with each request, its value masked; repeatable.",
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Requests under way at once; 1: one after another.  "
            f"[default: {REQUESTS_AT_ONCE} that must be refused, {STREAMS} streams]",
        ),
    ] = None,
    dry: Annotated[
        bool,
        typer.Option("--dry-run", help="List the requests and what they can cost; send nothing."),
    ] = False,
    only: options.Only = None,
    skip: options.Skip = None,
    known: options.Known = None,
    strict: options.Strict = False,
    tokenizer: options.Tokenizer = None,
    html: options.Html = None,
    junit: options.Junit = None,
    sarif: options.Sarif = None,
    json_file: options.JsonFile = None,
    md: options.Md = None,
    badge: options.BadgeFile = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    color: options.ColourOption = "auto",
    ascii: options.Ascii = False,  # noqa: A002 -- the option's name
) -> int:
    """Ask an endpoint, judge its answers, and keep the recording.

    The key comes from the environment or a file, never from the command line. Nothing is sent
    twice: there are no retries, and redirects are not followed. `cheapgpu verify RUN` judges the
    recording again.
    """
    detail = options.detail_of(verbose=verbose, quiet=quiet)
    style = options.style_of(color, ascii_only=ascii)
    terms = terms_of(only, skip, known, strict=strict)
    path = output or unused_name(datetime.now().astimezone(), Path())
    files = report_files(
        keep=[str(path)], html=html, junit=junit, sarif=sarif, json=json_file, md=md, badge=badge
    )
    printed = prints_report(files, json=json)
    target = parse_target(url)
    plan = Plan(
        target=target,
        model=model,
        key=_key(key_env, key_file),
        headers=_headers(header or []),
        context=trusted(ca) if target.secure else None,
        cases=catalogue(ceiling=ceiling, streams=max(STREAMS, concurrency or 0)),
        ceiling=ceiling,
        concurrency=REQUESTS_AT_ONCE if concurrency is None else concurrency,
        limits=Limits(first_byte_seconds=timeout),
        count_tokens=counter(tokenizer) if tokenizer is not None else None,
    )
    cases = needed(plan, terms.chosen)
    plan = replace(plan, cases=cases, budget=Budget(seconds=budget, tokens=tokens))
    if dry:
        say(dry_run_json(plan) if json else dry_run(plan, style, bodies=verbose))
        return CONFORMS
    finished, interrupted = _run(plan, path, style)
    run = decided(_run_of(finished, plan, path, tokenizer), terms)
    answered = any(exchange.head is not None for exchange in run.exchanges)
    if json:
        say(to_json(document(run)))
    elif answered and printed:
        say(terminal_report(run, style, detail))
    lines = remarks(finished.recording, keyed=plan.key is not None)
    if finished.stopped:
        lines += [f"cheapgpu check: {finished.stopped}", f"  the recording is in {path}"]
    complain("".join(f"{style.text(line)}\n" for line in lines))
    write_reports([run], files)
    return INTERRUPTED if interrupted else exit_code([run.standing])


def _run_of(finished: RunFinished, plan: Plan, path: Path, tokenizer: Path | None) -> Run:
    """What the reports show of a run, and the command that judges its recording again."""
    given = tokenizer_argument(tokenizer)
    return Run(
        report=finished.report,
        exchanges=finished.recording.exchanges,
        target=plan.target.url,
        source=str(path),
        about=(f"model {plan.model}", f"recorded {finished.recording.started}"),
        commands=(
            (
                f"cheapgpu verify{given} {shlex.quote(str(path))}",
                "judges again, without the network",
            ),
        ),
        started=finished.recording.started,
    )


def _run(plan: Plan, path: Path, style: Style) -> tuple[RunFinished, bool]:
    """Carry out a plan and record it; how it finished, and whether it was interrupted."""
    finished: list[RunFinished] = []

    def keep(event: Event) -> None:
        if isinstance(event, RunFinished):
            finished.append(event)

    listeners: list[Listener] = [keep]
    if sys.stderr.isatty():
        listeners.append(progress(style))
    with RecordingFile(path, plan.secrets) as recording:
        try:
            interrupted = asyncio.run(_interruptible(plan, recording, *listeners))
        except CheapGPUError:
            raise
        except BaseException:
            complain(f"cheapgpu check: what was recorded is in {style.text(str(path))}\n")
            raise
    return finished[0], interrupted


async def _interruptible(plan: Plan, *listeners: Listener) -> bool:
    """Carry out a plan; the first SIGINT or SIGTERM closes it properly, the second ends all."""
    cancel_on_signals()
    with suppress(asyncio.CancelledError):
        await run_plan(plan, *listeners)
        return False
    return True


def cancel_on_signals() -> None:
    """Let the first SIGINT or SIGTERM cancel the task that asks for it, and the second end all."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    signals = (signal.SIGINT, signal.SIGTERM)

    def interrupt() -> None:
        for number in signals:
            loop.remove_signal_handler(number)
        if task is not None:
            task.cancel()

    for number in signals:
        loop.add_signal_handler(number, interrupt)


def progress(style: Style) -> Listener:
    """Tell a person at a terminal what is being asked, and how it went."""
    asked = False

    def tell(event: Event) -> None:
        nonlocal asked
        match event:
            case CaseStarted():
                asked = not event.left_out
                if asked:
                    complain(f"{event.number:>3}/{event.cases}  {event.case.name:<24}")
            case CaseFinished() if asked:
                complain(f"{event.exchange.closed.t:>7.1f} s  {style.text(_came_to(event))}\n")
            case _:
                pass

    return tell


def _came_to(finished: CaseFinished) -> str:
    """What a case came to, in a few words."""
    exchange, judgement = finished.exchange, finished.judgement
    if exchange.head is None:
        return exchange.closed.detail
    broken = len(judgement.broken)
    rules = f", {broken} rule{'s' if broken > 1 else ''} broken" if broken else ""
    return f"{exchange.head.status} {judgement.outcome}{rules}"


def _headers(fields: list[str]) -> tuple[tuple[str, str], ...]:
    """Take header fields apart; raises OptionError, and shows none of it, where one has no name."""
    pairs = [field.partition(":") for field in fields]
    if not all(colon for _, colon, _ in pairs):
        raise OptionError("--header: a field has no colon; give it like x-api-version:2")
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)


def _key(variable: str | None, file: Path | None) -> str | None:
    """Read the key; raises OptionError where it is not to be had."""
    if variable is not None and file is not None:
        raise OptionError("--key-env and --key-file exclude each other; give one")
    if variable is not None:
        return options.key_of(variable)
    if file is None:
        return None
    try:
        with file.open("rb") as opened:
            data = opened.read(_KEY_BYTES + 1)
    except (OSError, ValueError) as error:
        # The name is left out: by mistake it may be the key.
        problem = (error.strerror if isinstance(error, OSError) else None) or "no such file"
        raise OptionError(f"--key-file: {problem}; give a file's name, not the key") from None
    if len(data) > _KEY_BYTES:
        raise OptionError("--key-file: the file is too long; it must hold the key alone")
    return data.decode("latin-1").removesuffix("\n").removesuffix("\r")
