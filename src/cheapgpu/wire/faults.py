"""Faults of our own: reported by kind and place, never with what was being handled."""

import asyncio
import traceback
from pathlib import PurePath
from typing import Final

#: Of a traceback so many places are told, the innermost first.
_PLACES: Final = 5


def report_fault(what: str, error: BaseException) -> None:
    """Tell the loop's exception handler which callback failed, and where.

    Neither the exception nor its text is passed on: either may hold a prompt, an answer or a key.
    """
    frames = list(traceback.walk_tb(error.__traceback__))[-_PLACES:]
    places = " < ".join(
        f"{PurePath(frame.f_code.co_filename).name}:{line}" for frame, line in reversed(frames)
    )
    message = f"{what} failed: {type(error).__name__} at {places}"
    asyncio.get_running_loop().call_exception_handler({"message": message})
