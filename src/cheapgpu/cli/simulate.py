"""`cheapgpu simulate`: an endpoint on this machine that is wrong on purpose, or right."""

import asyncio
import secrets
import signal
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from cheapgpu.cli import options
from cheapgpu.cli.exit_codes import CONFORMS
from cheapgpu.cli.output import complain, say
from cheapgpu.report.document import to_json
from cheapgpu.simulate.endpoint import Endpoint
from cheapgpu.simulate.faults import FAULTS, Fault, chosen, matching
from cheapgpu.simulate.server import serving

#: The variable that a made-up key is told under.
_KEY_VARIABLE: Final = "SIMULATE_KEY"
_HIGHEST_PORT: Final = 65_535


def simulate(
    faults: Annotated[list[str] | None, typer.Argument(metavar="FAULT", hidden=True)] = None,
    *,
    list_only: Annotated[
        bool, typer.Option("--list", help="List the faults, and serve nothing.")
    ] = False,
    model: Annotated[
        str, typer.Option(metavar="ID", help="The supplier model id that it knows.")
    ] = "simulated",
    key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The variable with its bearer key; without it one is made up."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=_HIGHEST_PORT, help="The port; 0: any free one.")
    ] = 0,
    pace: Annotated[float, typer.Option(metavar="MS", help="Milliseconds for each token.")] = 5.0,
    ceiling: Annotated[
        int, typer.Option(metavar="TOKENS", help="The largest max_completion_tokens it admits.")
    ] = 4096,
    json: options.Json = False,
) -> int:
    """Serve an endpoint that is wrong on purpose.

    FAULT is the name of a fault, such as stream/usage-once or timing/stall; several are combined in
    their order, and without any the endpoint is right. Its text is made by a script. It runs until
    it is interrupted. With --list, FAULT may be a pattern, such as timing/*.
    """
    if list_only:
        say(_listing(matching(faults) if faults else FAULTS, json=json))
        return CONFORMS
    wrong = chosen(faults or ())
    variable, key = _key(key_env)
    endpoint = Endpoint(key=key, model=model, pace=pace / 1000, ceiling=ceiling, faults=wrong)
    if key_env is None:
        complain(f"export {variable}={key}\n")
    asyncio.run(_serve(endpoint, variable, host, port, json=json))
    return CONFORMS


async def _serve(endpoint: Endpoint, variable: str, host: str, port: int, *, json: bool) -> None:
    """Serve until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serving(endpoint, host=host, port=port) as url:
        say(_about(endpoint, url, variable, json=json))
        await stop.wait()


def _about(endpoint: Endpoint, url: str, variable: str, *, json: bool) -> str:
    """Where the endpoint is, and how to ask it."""
    if json:
        return to_json(
            {
                "inference_url": url,
                "model": endpoint.model,
                "key_env": variable,
                "faults": [_entry(fault) for fault in endpoint.faults],
            }
        )
    lines = [
        f"inference_url  {url}",
        f"model          {endpoint.model}",
        f"key            in {variable}",
        *(f"fault          {fault.name}: {fault.sentence}" for fault in endpoint.faults),
        f"cheapgpu check {url} --model {endpoint.model} --key-env {variable}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _key(variable: str | None) -> tuple[str, str]:
    """The variable that the key is in, and the key."""
    if variable is None:
        return _KEY_VARIABLE, f"simulate-{secrets.token_hex(16)}"
    return variable, options.key_of(variable)


def _listing(faults: Sequence[Fault], *, json: bool) -> str:
    if json:
        return to_json([_entry(fault) for fault in faults])
    return "".join(f"{_paragraph(fault)}\n" for fault in faults)


def _paragraph(fault: Fault) -> str:
    """A fault in a few lines: name, sentence, and what a check says of it."""
    lines = [fault.name, f"  {fault.sentence}"]
    if fault.breaks:
        lines.append(f"  breaks {', '.join(fault.breaks)}")
    if fault.opens:
        lines.append(f"  leaves undecided {', '.join(fault.opens)}")
    if not fault.breaks and not fault.opens:
        lines.append("  breaks nothing")
    return "\n".join(lines)


def _entry(fault: Fault) -> dict[str, Any]:
    return {
        "name": fault.name,
        "sentence": fault.sentence,
        "breaks": list(fault.breaks),
        "leaves_undecided": list(fault.opens),
    }
