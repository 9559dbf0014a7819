"""Writes to the terminal or the pipe: a reader who leaves early is no error."""

import os
import sys
from typing import IO, AnyStr


def say(text: str) -> None:
    """Write text to standard output at once; once its reader has gone, to nobody."""
    _write(sys.stdout, text)


def say_utf8(text: str) -> None:
    """Write text to standard output as UTF-8, whatever a terminal would want: for files and pipes.

    Its reader may leave, as with `say`.
    """
    sys.stdout.flush()
    _write(sys.stdout.buffer, text.encode())


def complain(text: str) -> None:
    """Write text to standard error."""
    _write(sys.stderr, text)


def settle_output() -> None:
    """Write out what waits, so that Python finds nothing to do, or to fail at, when it ends."""
    _write(sys.stdout, "")
    _write(sys.stderr, "")


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
    except BrokenPipeError:
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, stream.fileno())
        os.close(nobody)
