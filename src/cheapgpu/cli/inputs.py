"""Reads what there is to judge: recordings, saved answers and archives, from files or a pipe."""

import re
import sys
from dataclasses import dataclass
from typing import Final, Literal

from cheapgpu.cli.har import read_har
from cheapgpu.cli.http_message import begins_message, message_exchange
from cheapgpu.cli.output import complain
from cheapgpu.core.errors import CheapGPUError, RecordingError
from cheapgpu.core.exchange import Closed, Exchange, Read
from cheapgpu.core.recording import read_recording

#: The most that is read of one file, in bytes: a recording of an answer at its limit fits in twice.
FILE_BYTES: Final = 256 << 20
STDIN: Final = "standard input"

Kind = Literal["recording", "har", "message", "body"]

_BY_SUFFIX: Final[dict[str, Kind]] = {".jsonl": "recording", ".har": "har"}
_RECORDING: Final = re.compile(rb'\s*\{\s*"kind"\s*:')
_HAR: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"log"\s*:\s*\{')
#: Where an answer without its head came from is not known, nor is when.
_BARE: Final = "a body alone: no head, no times"


class InputError(CheapGPUError):
    """A file cannot be judged; the message names it and says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What one file holds: exchanges, and what it says about them."""

    #: The path as given, or what it is called if it has none.
    name: str
    exchanges: tuple[Exchange, ...]
    target: str = ""
    #: Time of day at which it was recorded (RFC 3339); None if it does not say.
    started: str | None = None
    #: One phrase on where it comes from, or on what it lacks.
    about: str


def read_input(path: str) -> Input:
    """Read one file, or standard input for `-`, whatever of the four kinds it is.

    The kinds: a recording, a HAR, an answer with its head (`curl -i`), a body alone. The name
    decides for `.jsonl` and `.har`, the first bytes otherwise. Raises InputError.
    """
    name = STDIN if path == "-" else path
    data = _from_stdin() if path == "-" else _from_file(path)
    if not data:
        raise InputError(f"{name}: nothing is in it; record the answer again")
    if len(data) > FILE_BYTES:
        raise InputError(f"{name}: over {FILE_BYTES >> 20} MiB; split it into smaller recordings")
    try:
        return _read(name, _kind(path, data), data)
    except CheapGPUError as error:
        raise InputError(f"{name}: {error}") from None


def _read(name: str, kind: Kind, data: bytes) -> Input:
    match kind:
        case "recording":
            try:
                recording = read_recording(data)
            except RecordingError as error:
                raise InputError(f"{error}; record it again") from None
            return Input(
                name=name,
                exchanges=recording.exchanges,
                target=recording.target,
                started=recording.started,
                about=f"recorded {recording.started} by {recording.tool}",
            )
        case "har":
            archive = read_har(data)
            return Input(
                name=name,
                exchanges=archive.exchanges,
                target=archive.target,
                started=archive.started,
                about="a HAR: no times within the answers",
            )
        case "message":
            exchange = message_exchange("answer", ((0.0, data),), timed=False)
            about = "an answer with its head: no request, no times"
            return Input(name=name, exchanges=(exchange,), about=about)
        case "body":
            return Input(name=name, exchanges=(_bare_exchange(data),), about=_BARE)


def _bare_exchange(body: bytes) -> Exchange:
    return Exchange(
        case="body",
        reads=(Read(t=0.0, at=0, data=body),),
        closed=Closed(t=0.0, how="unstated"),
        timed=False,
    )


def _kind(path: str, data: bytes) -> Kind:
    suffix = path[path.rfind(".") :].lower() if "." in path else ""
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if begins_message(data):
        return "message"
    if _RECORDING.match(data):
        return "recording"
    return "har" if _HAR.match(data) else "body"


def _from_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- the path is used as it was given
            return file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: a directory; name the files in it") from None
    except OSError as error:
        raise InputError(f"{path}: it cannot be read: {error.strerror}") from None


def _from_stdin() -> bytes:
    if sys.stdin.isatty():
        complain("cheapgpu: reading from the terminal; Ctrl-D ends the input\n")
    return sys.stdin.buffer.read(FILE_BYTES + 1)
