"""One line of JSON for each answer, without a word of what was asked or said.

Lines wait a moment and are written together, by a thread of their own: a reader that stalls holds
up no answer. What finds no room meanwhile, or cannot be written, is dropped and counted.
"""

import os
import queue
import threading
from contextlib import suppress
from typing import Final

import msgspec

from cheapgpu.core.errors import CheapGPUError
from cheapgpu.endpoint.relay import Record, Refused

#: Bytes that are gathered before the next sweep, and batches that may wait to be written.
_BATCH_BYTES: Final = 1 << 16
_BATCHES: Final = 64
#: Seconds that the last lines have to be written when the log is closed.
_CLOSE_SECONDS: Final = 2.0
_encode: Final = msgspec.json.Encoder().encode


class AccessLogError(CheapGPUError):
    """The log cannot be opened; the message names the file."""


class AccessLog:
    """Appends records to a file descriptor: `add` them, and `sweep` from time to time."""

    __slots__ = ("_batches", "_descriptor", "_lines", "_size", "_thread", "dropped")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: list[bytes] = []
        self._size = 0
        self._batches: queue.Queue[list[bytes] | None] = queue.Queue(_BATCHES)
        #: Lines that were not written.
        self.dropped = 0
        self._thread = threading.Thread(target=self._write, name="access-log", daemon=True)
        self._thread.start()

    def add(self, record: Record | Refused) -> None:
        """Take a record, to be written soon."""
        line = _encode(record) + b"\n"
        self._lines.append(line)
        self._size += len(line)
        if self._size > _BATCH_BYTES:
            self.sweep(0.0)

    def sweep(self, now: float) -> None:  # noqa: ARG002 -- as the sweeper calls it
        """Hand over what waits."""
        lines = self._lines
        if lines:
            try:
                self._batches.put_nowait(lines)
            except queue.Full:
                self.dropped += len(lines)
            self._lines, self._size = [], 0

    def close(self) -> None:
        """Write what waits, if that takes no more than a moment."""
        self.sweep(0.0)
        with suppress(queue.Full):
            self._batches.put(None, timeout=_CLOSE_SECONDS)
            self._thread.join(_CLOSE_SECONDS)

    def _write(self) -> None:
        while (lines := self._batches.get()) is not None:
            data = b"".join(lines)
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError:
                self.dropped += len(lines)


def open_log(where: str) -> AccessLog | None:
    """The log that the settings name: "-" is standard output, "" none.

    Raises AccessLogError if the file cannot be appended to.
    """
    if not where:
        return None
    if where == "-":
        return AccessLog(1)
    try:
        return AccessLog(os.open(where, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640))
    except OSError as error:
        raise AccessLogError(f"access_log: {where}: {error.strerror}") from None
