"""Writes to the terminal or the pipe: a reader who leaves early is no error."""

import os
import sys
from typing import TextIO


def say(text: str) -> None:
    """Write text to standard output at once; once its reader has gone, to nobody."""
    _write(sys.stdout, text)


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


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, stream.fileno())
        os.close(nobody)
