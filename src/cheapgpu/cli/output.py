"""Writes to the terminal or the pipe: a reader who leaves early is no error."""

import os
import sys
from contextlib import suppress
from typing import IO, AnyStr


class OutputError(Exception):
    """Standard output cannot be written to; the message says why. What was said is lost."""


def open_streams() -> None:
    """Give the program the standard streams that it was started without.

    Nothing can be read there, and what goes to standard error goes to nobody. Standard output
    refuses what is written: a verdict that nobody can see is none. The system gives each the lowest
    free descriptor, so that no file that is opened later is taken for one of them.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 -- open to the end
    if sys.stdout is None:
        closed = os.open(os.devnull, os.O_RDONLY)
        sys.stdout = open(closed, "w", encoding="utf-8")  # noqa: PTH123, SIM115 -- as above
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 -- as above


def say(text: str) -> None:
    """Write text to standard output at once; once its reader has gone, to nobody.

    Raises OutputError if it cannot be written.
    """
    _write(sys.stdout, text)


def say_utf8(text: str) -> None:
    """Write text to standard output as UTF-8, whatever a terminal would want: for files and pipes.

    Its reader may leave, as with `say`.
    """
    _write(sys.stdout, "")
    _write(sys.stdout.buffer, text.encode())


def complain(text: str) -> None:
    """Write text to standard error; where that is impossible, to nobody."""
    with suppress(OutputError):
        _write(sys.stderr, text)


def settle_output() -> None:
    """Write out what waits, so that Python finds nothing to do, or to fail at, when it ends.

    Raises OutputError if standard output cannot be written.
    """
    complain("")
    _write(sys.stdout, "")


def can_write(text: str) -> bool:
    """Whether standard output can spell some text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _write(stream: IO[AnyStr], text: AnyStr) -> None:
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        # What waits goes to nobody, or Python would fail at it once more when it ends.
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, stream.fileno())
        os.close(nobody)
        if not isinstance(error, BrokenPipeError):
            raise OutputError(error.strerror or type(error).__name__) from None
