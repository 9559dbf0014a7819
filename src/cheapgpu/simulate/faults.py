"""Every fault by its name: the gallery of wrong endpoints."""

import difflib
import fnmatch
from collections.abc import Iterable
from typing import Final

from cheapgpu.simulate.endpoint import SimulateError
from cheapgpu.simulate.gallery.admission import ADMISSION
from cheapgpu.simulate.gallery.answering import ANSWERING
from cheapgpu.simulate.gallery.conduct import CONDUCT
from cheapgpu.simulate.gallery.fault import Fault
from cheapgpu.simulate.gallery.scenarios import SCENARIOS
from cheapgpu.simulate.gallery.streams import STREAMS
from cheapgpu.simulate.gallery.timing import TIMING
from cheapgpu.simulate.gallery.transport import TRANSPORT

__all__ = ["BY_NAME", "FAULTS", "Fault", "chosen", "matching"]

FAULTS: Final[tuple[Fault, ...]] = (
    *ADMISSION,
    *ANSWERING,
    *STREAMS,
    *CONDUCT,
    *TIMING,
    *TRANSPORT,
    *SCENARIOS,
)
BY_NAME: Final = {fault.name: fault for fault in FAULTS}


def chosen(names: Iterable[str]) -> tuple[Fault, ...]:
    """Return the faults of these names, each once, in their order.

    Raises SimulateError for a name that is none, with the names nearest to it.
    """
    for name in names:
        if name not in BY_NAME:
            raise _unknown(name)
    return tuple(BY_NAME[name] for name in dict.fromkeys(names))


def matching(globs: Iterable[str]) -> tuple[Fault, ...]:
    """Return the faults that names or globs (`timing/*`) match, in the gallery's order.

    Raises SimulateError for a glob that matches nothing.
    """
    wanted: set[str] = set()
    for glob in globs:
        found = fnmatch.filter(BY_NAME, glob)
        if not found:
            raise _unknown(glob)
        wanted.update(found)
    return tuple(fault for fault in FAULTS if fault.name in wanted)


def _unknown(name: str) -> SimulateError:
    near = difflib.get_close_matches(name, BY_NAME, n=3, cutoff=0.7)
    near = near or [known for known in BY_NAME if known.partition("/")[2] == name][:3]
    hint = f"did you mean {' or '.join(near)}?" if near else "--list shows them all"
    return SimulateError(f"FAULT: there is none named {name!r}; {hint}")
