"""The file of a recording, written as the run goes on."""

import os
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from cheapgpu.check.events import CaseFinished, CaseStarted, Event, RunFinished, RunStarted, Sent
from cheapgpu.core.errors import CheapGPUError
from cheapgpu.core.exchange import Closed, Head, Read
from cheapgpu.core.recording import Recorder


class RecordingFileError(CheapGPUError):
    """A recording cannot be written where it was asked for; the message says why."""


class RecordingFile:
    """Listens to a run and writes each line when it happens.

    A run that is killed leaves a file without its end line, which `verify` refuses. Raises
    RecordingFileError where there is a file already, or where none can be.
    """

    def __init__(self, path: Path, secrets: list[str]) -> None:
        try:
            # Unbuffered: nothing waits that a full disk could refuse a second time, at the end.
            self._file = path.open("xb", buffering=0)
        except FileExistsError:
            raise RecordingFileError(
                f"-o: {path} exists, and a recording is never overwritten; give another name"
            ) from None
        except OSError as error:
            raise RecordingFileError(f"-o: {path}: {error.strerror}") from None
        self._path = path
        self._recorder = Recorder(secrets)

    def __call__(self, event: Event) -> None:
        """Write the line of an event; raises RecordingFileError if the disk does not take it."""
        line = memoryview(self._line(event))
        try:
            while line:
                line = line[self._file.write(line) :]
            if isinstance(event, RunFinished):
                os.fsync(self._file.fileno())
        except OSError as error:
            raise RecordingFileError(
                f"-o: {self._path}: {error.strerror}; the run was ended, and what is in the file "
                "cannot be judged"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def _line(self, event: Event) -> bytes:
        recorder = self._recorder
        match event:
            case RunStarted():
                return recorder.begin(tool=event.tool, started=event.started, target=event.target)
            case CaseStarted():
                case = event.case
                return recorder.case(
                    case.name,
                    credential=case.credential,
                    model=case.model,
                    request=event.request,
                    ceiling=event.ceiling,
                )
            case Sent():
                return recorder.sent(event.t)
            case Head():
                return recorder.head(event)
            case Read():
                return recorder.read(event)
            case Closed():
                return recorder.closed(event)
            case RunFinished():
                return recorder.end()
            case CaseFinished():
                return b""


def unused_name(now: datetime, folder: Path) -> Path:
    """A name for a recording that begins now, such as run-20261130-221530.jsonl."""
    stem = f"run-{now:%Y%m%d-%H%M%S}"
    path = folder / f"{stem}.jsonl"
    number = 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}.jsonl"
    return path
