"""Asks an engine what it is and what it serves, at start and from then on.

Source: profile, "Endpoint": an endpoint serves the models that it declares. An engine that does not
list a declared model is not ready, since some answer as any model that they are asked for.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from cheapgpu.endpoint.dialects import recognise
from cheapgpu.endpoint.engine import ServedModel, Upstream
from cheapgpu.endpoint.fetch import FetchError, fetch
from cheapgpu.wire.client import Pool

#: Seconds between two looks at an engine that is ready, and at one that is not.
READY_SECONDS: Final = 10.0
NOT_READY_SECONDS: Final = 1.0
#: Seconds that an engine has for its model list.
_ANSWER_SECONDS: Final = 5.0
_COMPLETIONS: Final = "/chat/completions"


async def watch(
    pool: Pool,
    upstream: Upstream,
    models: Sequence[ServedModel],
    tell: Callable[[str], None],
) -> None:
    """Look at an engine for as long as the endpoint runs; `tell` is given what changes."""
    while True:
        before = (upstream.ready, upstream.why_not, upstream.dialect)
        await look(pool, upstream, models)
        if (upstream.ready, upstream.why_not, upstream.dialect) != before:
            tell(state_of(upstream))
        upstream.doubted.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS if upstream.ready else NOT_READY_SECONDS):
                await upstream.doubted.wait()


def state_of(upstream: Upstream) -> str:
    """One line about an engine: what it is, and whether it is ready."""
    name = upstream.dialect.title if upstream.dialect else "not recognised yet"
    ready = "ready" if upstream.ready else f"not ready: {upstream.why_not}"
    return f"{upstream.name}: {name}, {ready}"


async def look(pool: Pool, upstream: Upstream, models: Sequence[ServedModel]) -> None:
    """Ask an engine for its models once, and note what that says of it."""
    path, _, query = upstream.target.partition("?")
    if not path.endswith(_COMPLETIONS):
        _assume(upstream)
        return
    target = path.removesuffix(_COMPLETIONS) + "/models" + (f"?{query}" if query else "")
    try:
        status, answer_fields, body = await fetch(
            pool, upstream.origin, target, upstream.lines, seconds=_ANSWER_SECONDS
        )
    except FetchError as error:
        upstream.is_not_ready(str(error))
        return
    if status in (401, 403):
        upstream.is_not_ready(f"it refuses the upstream key ({status})")
    elif status in (404, 405, 501) or (status == 500 and upstream.dialect is not None):
        _assume(upstream)  # transformers answers 500 where it has no cache to list
    elif status != 200:
        upstream.is_not_ready(f"it answers {status} to a question for its models")
    else:
        _judge(upstream, models, answer_fields, body)


def _assume(upstream: Upstream) -> None:
    """Take an engine that has no model list at its word."""
    if upstream.dialect is None:
        upstream.dialect = recognise({}, [])
    _ready_unless_mute(upstream)


def _judge(
    upstream: Upstream,
    models: Sequence[ServedModel],
    fields: dict[bytes, bytes],
    body: bytes,
) -> None:
    listed = _listed(body)
    if listed is None:
        upstream.is_not_ready("its model list is none")
        return
    if upstream.dialect is None:
        upstream.dialect = recognise(fields, listed)
    names = {model.get("id") for model in listed}
    names |= {alias for model in listed for alias in _aliases(model)}
    missing = [model.engine_id for model in models if not _serves(names, model.engine_id)]
    if missing:
        upstream.is_not_ready(f"it does not list {', '.join(map(repr, missing))}")
    else:
        _ready_unless_mute(upstream)


def _ready_unless_mute(upstream: Upstream) -> None:
    dialect = upstream.dialect
    if dialect is not None and dialect.no_streams and not upstream.plain_only:
        upstream.is_not_ready(f"{dialect.no_streams}; plain_only serves plain answers alone")
    else:
        upstream.is_ready()


def _serves(names: set[Any], engine_id: str) -> bool:
    """Whether an id is listed; Ollama adds the tag `latest` to a name without one."""
    return engine_id in names or f"{engine_id}:latest" in names


def _listed(body: bytes) -> list[dict[str, Any]] | None:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    models = value.get("data") if isinstance(value, dict) else None
    if models is None:  # Ollama without any model
        models = []
    if not isinstance(models, list):
        return None
    return [
        model for model in models if isinstance(model, dict) and isinstance(model.get("id"), str)
    ]


def _aliases(model: dict[str, Any]) -> list[str]:
    """Other names of a model, as llama.cpp lists them."""
    aliases = model.get("aliases")
    return [a for a in aliases if isinstance(a, str)] if isinstance(aliases, list) else []
