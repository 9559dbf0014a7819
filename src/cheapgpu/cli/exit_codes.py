"""What a command's exit code says. Nothing but a verdict ends in 0 or 1."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cheapgpu.core.findings import Verdict

#: Every MUST rule that was looked at holds; or the command did what it was asked.
CONFORMS: Final = 0
DOES_NOT_CONFORM: Final = 1
#: The command line, the configuration or a file is wrong; nothing was judged.
WRONG_USE: Final = 2
NOT_ESTABLISHED: Final = 3
#: A fault of this program (EX_SOFTWARE in sysexits.h).
INTERNAL_ERROR: Final = 70
#: Standard output took no more, so nobody has seen what was to be told (EX_IOERR in sysexits.h).
OUTPUT_LOST: Final = 74
#: Stopped from the keyboard: 128 and the number of SIGINT.
INTERRUPTED: Final = 130

_BY_VERDICT: Final[dict["Verdict", int]] = {
    "conforms": CONFORMS,
    "does not conform": DOES_NOT_CONFORM,
    "not established": NOT_ESTABLISHED,
}


def exit_code(verdicts: Iterable["Verdict"]) -> int:
    """Return the exit code of the worst verdict; without any, nothing was established."""
    codes = {_BY_VERDICT[verdict] for verdict in verdicts}
    return next(
        (code for code in (DOES_NOT_CONFORM, NOT_ESTABLISHED, CONFORMS) if code in codes),
        NOT_ESTABLISHED,
    )
