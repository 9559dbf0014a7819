"""`cheapgpu endpoint`: stands before a model server, or runs one, and answers by the profile."""

import asyncio
import gc
import ipaddress
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
import uvloop

from cheapgpu.cli import options
from cheapgpu.cli.exit_codes import CONFORMS, INTERRUPTED
from cheapgpu.cli.options import OptionError
from cheapgpu.cli.output import complain, say
from cheapgpu.core.errors import CheapGPUError
from cheapgpu.endpoint.dialects import DIALECTS, Dialect
from cheapgpu.endpoint.edits import EDITS
from cheapgpu.endpoint.running import Running, keyring_of, running_endpoint
from cheapgpu.endpoint.settings import (
    ModelSettings,
    Settings,
    UpstreamSettings,
    check,
    read_settings,
)
from cheapgpu.report.document import to_json

_HIGHEST_PORT: Final = 65_535


def endpoint(
    *,
    upstream: Annotated[
        str | None, typer.Option(metavar="URL", help="The engine's full chat completions URL.")
    ] = None,
    gguf: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Run this model file with llama.cpp; smollm2: the packaged one."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID[=ENGINE_ID]", help="A model, and what the engine calls it; repeatable."
        ),
    ] = None,
    ceiling: Annotated[
        int, typer.Option(metavar="TOKENS", help="The largest max_completion_tokens admitted.")
    ] = 4096,
    key_env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A variable with the buyers' bearer keys; repeatable."),
    ] = None,
    key_file: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="A file of keys, read again on SIGHUP; repeatable."),
    ] = None,
    upstream_key_env: Annotated[
        str, typer.Option(metavar="NAME", help="The variable with the key that the engine wants.")
    ] = "",
    dialect: Annotated[
        str, typer.Option(metavar="NAME", help="How the engine speaks; auto: ask it.")
    ] = "auto",
    at_once: Annotated[
        int, typer.Option(metavar="N", help="Requests at the engine at once; more get 429.")
    ] = 64,
    plain_only: Annotated[
        bool, typer.Option("--plain-only", help="Refuse streams: the engine's cannot be bridged.")
    ] = False,
    context: Annotated[
        int, typer.Option(metavar="TOKENS", help="--gguf: tokens of one conversation.")
    ] = 4096,
    slots: Annotated[int, typer.Option(metavar="N", help="--gguf: conversations at once.")] = 1,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="--gguf: threads; default: one per core.")
    ] = None,
    gpu_layers: Annotated[
        int | None, typer.Option(metavar="N", help="--gguf: layers on the GPU; default: as fit.")
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=_HIGHEST_PORT, help="The port; 0: any free one.")
    ] = 8400,
    path: Annotated[
        str, typer.Option(metavar="PATH", help="The path of inference.")
    ] = "/v1/chat/completions",
    tls_cert: Annotated[
        str, typer.Option(metavar="FILE", help="The certificate chain (PEM); with --tls-key.")
    ] = "",
    tls_key: Annotated[
        str, typer.Option(metavar="FILE", help="The certificate's private key (PEM).")
    ] = "",
    heartbeat: Annotated[
        float, typer.Option(metavar="S", help="Silence after which a buyer is sent a comment.")
    ] = 15.0,
    silence: Annotated[
        float, typer.Option(metavar="S", help="Silence of the engine's stream that fails it.")
    ] = 120.0,
    deadline: Annotated[
        float, typer.Option(metavar="S", help="Time that an answer may take in all.")
    ] = 3600.0,
    drain: Annotated[
        float, typer.Option(metavar="S", help="Time for answers in progress when stopped.")
    ] = 30.0,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=_HIGHEST_PORT, help="Serve Prometheus metrics on this port."
        ),
    ] = None,
    access_log: Annotated[
        str, typer.Option(metavar="FILE", help="One line of JSON an answer; -: stdout, none: no.")
    ] = "-",
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Settings (TOML), in place of the options above."),
    ] = None,
    check_config: Annotated[
        bool, typer.Option("--check-config", help="Check the settings and the keys, and end.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="List the dialects and the honest edits, and end.")
    ] = False,
    json: options.Json = False,
) -> int:
    """Stand before a model server, and answer by the profile.

    Requests are checked whole before the engine sees them; its answers are edited honestly,
    verified and passed on event by event; what cannot be honoured fails, and says so. It runs until
    it is interrupted; then answers in progress may end.
    """
    if explain:
        say(_explained(DIALECTS.values() if dialect == "auto" else [_known(dialect)], json=json))
        return CONFORMS
    if config is not None:
        if upstream or gguf or model or key_env or key_file:
            raise OptionError("--config: excludes --upstream, --gguf, --model and the keys")
        settings = read_settings(config)
    else:
        settings = Settings(
            host=host,
            port=port,
            path=path,
            key_env=tuple(key_env or ()),
            key_file=tuple(key_file or ()),
            tls_cert=tls_cert,
            tls_key=tls_key,
            heartbeat=heartbeat,
            silence=silence,
            deadline=deadline,
            drain=drain,
            metrics_port=metrics_port,
            access_log="" if access_log == "none" else access_log,
            upstream=(
                UpstreamSettings(
                    url=upstream or "",
                    gguf=gguf or "",
                    dialect=dialect,
                    key_env=upstream_key_env,
                    at_once=at_once,
                    plain_only=plain_only,
                    context=context,
                    slots=slots,
                    threads=threads,
                    gpu_layers=gpu_layers,
                    model=tuple(_model(text, ceiling) for text in model or ()),
                ),
            ),
        )
        check(settings)
    if check_config:
        keyring_of(settings, os.environ)
        complain("endpoint: the settings and the keys are in order\n")
        return CONFORMS
    # What is loaded by now stays: the collector need not look at it again, nor look so often.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, json=json))


class _Orders:
    """What signals have ordered: while the endpoint starts, to give up; then to end, or at once."""

    def __init__(self) -> None:
        self.serving = False
        self.end = asyncio.Event()
        self.end_now = asyncio.Event()
        self._starter = asyncio.current_task()

    def take(self) -> None:
        """Take the order to end."""
        if self.serving:
            (self.end_now if self.end.is_set() else self.end).set()
        elif self._starter is not None:
            self._starter.cancel()


async def _serve(settings: Settings, *, json: bool) -> int:
    """Serve until the first order to end and the last answer, or until the second order."""
    orders = _Orders()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, orders.take)
    try:
        async with running_endpoint(settings, os.environ, _tell) as running:
            loop.add_signal_handler(signal.SIGHUP, _reload, running)
            orders.serving = True
            _announce(settings, running, json=json)
            await orders.end.wait()
            _tell(f"ending; answers in progress have {settings.drain:g} s; again ends at once")
            await _drained(running, orders)
    except asyncio.CancelledError:
        return INTERRUPTED
    return CONFORMS


async def _drained(running: Running, orders: _Orders) -> None:
    draining = asyncio.create_task(running.drain())
    hurry = asyncio.create_task(orders.end_now.wait())
    await asyncio.wait({draining, hurry}, return_when=asyncio.FIRST_COMPLETED)
    whole = draining.done() and draining.result()
    for task in (draining, hurry):
        task.cancel()
    await asyncio.gather(draining, hurry, return_exceptions=True)
    _tell("all answers have ended" if whole else "answers in progress are cut")


def _reload(running: Running) -> None:
    """Read the keys anew; those that are valid now stay so if that fails."""
    try:
        _tell(f"keys were read again: {running.reload_keys(os.environ)} are valid")
    except CheapGPUError as error:
        _tell(f"keys were not read again: {error}")


def _announce(settings: Settings, running: Running, *, json: bool) -> None:
    """Say where the endpoint is, and how to check it."""
    declared = [model for given in settings.upstream for model in given.model]
    models = [model.id for model in declared]
    if json:
        about = {
            "inference_url": running.inference_url,
            "models": models,
            "metrics_url": running.metrics_url,
        }
        say(msgspec.json.encode(about).decode() + "\n")
        return
    _tell(f"inference_url  {running.inference_url}")
    _tell(f"models         {', '.join(models)}")
    if running.metrics_url is not None:
        _tell(f"metrics        {running.metrics_url}")
    if not settings.tls_cert and not _is_loopback(settings.host):
        _tell("no TLS: keys and texts can be read on the way, unless a proxy in front has it")
    key = f" --key-env {settings.key_env[0]}" if settings.key_env else " --key-env NAME"
    ceiling = f" --ceiling {declared[0].ceiling}"
    _tell(f"cheapgpu check {running.inference_url} --model {models[0]}{ceiling}{key}")


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tell(what: str) -> None:
    complain(f"endpoint: {what}\n")


def _model(text: str, ceiling: int) -> ModelSettings:
    name, _, engine_id = text.partition("=")
    return ModelSettings(id=name, engine_id=engine_id, ceiling=ceiling)


def _known(name: str) -> Dialect:
    dialect = DIALECTS.get(name)
    if dialect is None:
        raise OptionError(f"--dialect: {name!r} is not known; known are {', '.join(DIALECTS)}")
    return dialect


def _explained(dialects: Iterable[Dialect], *, json: bool) -> str:
    """What is changed of every engine's answers, and what differs by dialect."""
    if json:
        edits = {str(edit): sentence for edit, sentence in EDITS.items()}
        return to_json({"edits": edits, "dialects": [_entry(each) for each in dialects]})
    lines = ["Honest edits, of any engine's answers, each counted:", ""]
    width = max(map(len, EDITS))
    lines += [f"  {edit:{width}}  {sentence}" for edit, sentence in EDITS.items()]
    lines += [
        "",
        "Never: usage, a finish reason or text that the engine did not give; a retry.",
        "",
    ]
    for each in dialects:
        lines += [f"{each.name}: {each.title}", *(f"  - {fact}" for fact in _facts(each)), ""]
    return "\n".join(lines)


def _facts(dialect: Dialect) -> list[str]:
    """What differs in one dialect, a sentence each."""
    facts = [f"the limit is sent as {' and '.join(dialect.limits)}"]
    facts += [f"its finish reason {theirs} is {ours}" for theirs, ours in dialect.synonyms.items()]
    if dialect.collects:
        facts.append(
            "a plain answer is asked for as a stream and collected, so that it stops when its "
            "buyer leaves"
        )
    if dialect.no_streams:
        facts.append(f"streams are refused: {dialect.no_streams}")
    return facts + list(dialect.notes)


def _entry(dialect: Dialect) -> dict[str, Any]:
    return {
        "name": dialect.name,
        "title": dialect.title,
        "limits": list(dialect.limits),
        "synonyms": dict(dialect.synonyms),
        "collects": dialect.collects,
        "no_streams": dialect.no_streams,
        "notes": list(dialect.notes),
    }
