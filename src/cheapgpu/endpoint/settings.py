"""What an endpoint is told: its models and engines, its keys and its limits; from TOML or options.

A settings file has the fields of `Settings`, with one `[[upstream]]` for each engine and one
`[[upstream.model]]` for each model that it serves.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from cheapgpu.core.errors import CheapGPUError
from cheapgpu.core.limits import REQUEST_BYTES
from cheapgpu.endpoint.dialects import DIALECTS

_HIGHEST_PORT: Final = 65_535
#: llama.cpp keeps a limit in 32 bits: a larger one becomes another number without a word.
_HIGHEST_CEILING: Final = 2**31 - 1
_FILE_BYTES: Final = 1 << 20
_ADDRESS: Final = re.compile(r"\$\.?(.*)")


class SettingsError(CheapGPUError):
    """Settings cannot be meant; the message names the field, what stands there and the remedy."""


class ModelSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that buyers may ask for."""

    #: The supplier model id: what buyers ask for, and what every answer is labelled.
    id: str
    #: What the engine calls it; the same, if left out.
    engine_id: str = ""
    #: The largest max_completion_tokens that is admitted, in tokens.
    ceiling: int = 4096


class UpstreamSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An engine: a model server that already runs at `url`, or a GGUF file to run."""

    #: Its full chat completions URL; empty where `gguf` is given.
    url: str = ""
    #: A model file that llama.cpp is to serve in a child process.
    gguf: str = ""
    #: The name of its dialect, or "auto".
    dialect: str = "auto"
    #: The environment variable with the key that the engine asks for.
    key_env: str = ""
    #: A PEM file with the authorities that its certificate is checked against.
    ca: str = ""
    #: Requests that may be at the engine at once; more are told to come back.
    at_once: int = 64
    #: Refuse streams, for an engine whose streams cannot be passed on.
    plain_only: bool = False
    #: Of a GGUF file: tokens of one conversation, conversations at once, threads, layers on a GPU.
    context: int = 4096
    slots: int = 1
    threads: int | None = None
    gpu_layers: int | None = None
    model: tuple[ModelSettings, ...] = ()


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that an endpoint is told. Times are seconds."""

    host: str = "127.0.0.1"
    port: int = 8400
    #: The path of inference.
    path: str = "/v1/chat/completions"
    #: Environment variables with bearer keys, and files of them.
    key_env: tuple[str, ...] = ()
    key_file: tuple[str, ...] = ()
    tls_cert: str = ""
    tls_key: str = ""
    #: Silence after which a waiting buyer of a stream is sent a comment.
    heartbeat: float = 15.0
    #: Silence of an engine within a stream after which its answer is given up.
    silence: float = 120.0
    #: Time that an answer may take in all.
    deadline: float = 3600.0
    #: The largest body of a request, in bytes.
    request_bytes: int = REQUEST_BYTES
    #: Time that answers in progress have when the endpoint is stopped.
    drain: float = 30.0
    #: Where metrics are served; none where the port is left out.
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    #: Where one line of JSON for each answer goes: "-" is standard output, "" nowhere.
    access_log: str = "-"
    upstream: tuple[UpstreamSettings, ...] = ()


def read_settings(path: Path) -> Settings:
    """Read a settings file; raises SettingsError that names the file, the field and the remedy."""
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES)
        value = tomllib.loads(text.decode())
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; give a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: is not TOML: {error}") from None
    return _read(value, f"{path}: ")


def _read(value: dict[str, Any], where: str) -> Settings:
    try:
        settings = msgspec.convert(value, Settings)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `")
        match = _ADDRESS.match(place.removesuffix("`"))
        field = match[1] if match and match[1] else "the file"
        raise SettingsError(f"{where}{field}: {message[0].lower()}{message[1:]}") from None
    check(settings, where)
    return settings


def check(settings: Settings, where: str = "") -> None:
    """Raise SettingsError for the first setting that cannot be meant."""
    for problem in _problems(settings):
        raise SettingsError(f"{where}{problem}")


def _problems(settings: Settings) -> Iterator[str]:
    yield from _server_problems(settings)
    if not settings.upstream:
        yield "upstream: there is none; give an engine's URL, or a GGUF file"
    names: set[str] = set()
    for number, upstream in enumerate(settings.upstream):
        at = f"upstream[{number}]" if len(settings.upstream) > 1 else "upstream"
        yield from _upstream_problems(upstream, at)
        for model in upstream.model:
            if model.id in names:
                yield f"{at}.model: {model.id!r} is declared twice; a model has one engine"
            names.add(model.id)


def _server_problems(settings: Settings) -> Iterator[str]:
    yield from _number("port", settings.port, 0, _HIGHEST_PORT)
    if settings.metrics_port is not None:
        yield from _number("metrics_port", settings.metrics_port, 0, _HIGHEST_PORT)
    if not re.fullmatch(r"/[!-~]*", settings.path) or "?" in settings.path or "#" in settings.path:
        yield "path: wanted a path such as /v1/chat/completions, without query"
    if not settings.key_env and not settings.key_file:
        yield "key_env, key_file: there is no key; an endpoint answers only buyers that have one"
    if bool(settings.tls_cert) != bool(settings.tls_key):
        yield "tls_cert, tls_key: one is given without the other; give both, or neither"
    yield from _number("heartbeat", settings.heartbeat, 0.05, 60)
    yield from _number("silence", settings.silence, 0.1, 3600)
    yield from _number("deadline", settings.deadline, 0.1, 86_400)
    yield from _number("drain", settings.drain, 0, 3600)
    yield from _number("request_bytes", settings.request_bytes, 1024, 1 << 28)


def _upstream_problems(upstream: UpstreamSettings, at: str) -> Iterator[str]:
    if bool(upstream.url) == bool(upstream.gguf):
        yield f"{at}: give either url or gguf"
    if upstream.gguf and upstream.dialect not in ("auto", "llama.cpp"):
        yield f"{at}.dialect: a GGUF file is served by llama.cpp; leave it out"
    if upstream.dialect != "auto" and upstream.dialect not in DIALECTS:
        yield f"{at}.dialect: {upstream.dialect!r} is not known; known are auto, " + ", ".join(
            DIALECTS
        )
    if not upstream.model:
        yield f"{at}.model: there is none; declare the models that it serves"
    yield from _number(f"{at}.at_once", upstream.at_once, 1, 100_000)
    yield from _number(f"{at}.context", upstream.context, 256, 2**24)
    yield from _number(f"{at}.slots", upstream.slots, 1, 256)
    for model in upstream.model:
        for field, name in (("id", model.id), ("engine_id", model.engine_id or model.id)):
            if not 1 <= len(name) <= 256:
                yield f"{at}.model.{field}: has {len(name)} characters; wanted 1 to 256"
        yield from _number(f"{at}.model.ceiling", model.ceiling, 1, _HIGHEST_CEILING)


def _number(field: str, value: float, least: float, most: float) -> Iterator[str]:
    if not least <= value <= most:
        yield f"{field}: is {value:g}; wanted {least:g} to {most:g}"
