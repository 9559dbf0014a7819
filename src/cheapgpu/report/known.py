"""Failures that are known: listed with a reason, so that only what changes fails a run.

The list is strict: an entry whose rule passes, or whose date is over, is itself a failure. It
changes the exit code of a command and nothing else: the verdict stays what was proven.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, Literal

from cheapgpu.core.errors import CheapGPUError, SelectionError
from cheapgpu.core.rules import BY_ID, RETIRED, select

#: What became of an entry: its rule is broken as it says · it passes · the date of the entry is
#: over · the rule was not looked at, or could not be decided.
KnownState = Literal["known", "passes", "expired", "not seen"]

#: The longest reason, in characters: it stands in tables and attributes.
_BECAUSE: Final = 500
_TABLE: Final = "known"
_MEMBERS: Final = ("id", "because", "until")
_EXAMPLE: Final = '[[known]], then id = "stream/usage-alone" and because = "…"'


class KnownFailureError(CheapGPUError):
    """A list of known failures is not as it must be; the message names the entry and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure:
    """A rule that is known to be broken, and why that is accepted for now."""

    #: The id of the rule.
    id: str
    because: str
    #: The last day on which the entry holds; None where it has no end.
    until: date | None = None
    #: Whether that day is over.
    expired: bool = False

    @property
    def reason(self) -> str:
        """The reason and the last day, in a phrase."""
        return f"{self.because} (until {self.until})" if self.until else self.because


def read_known(text: str, *, today: date) -> tuple[KnownFailure, ...]:
    """Read a list of known failures from TOML: tables `[[known]]` of `id`, `because`, `until`.

    `until` is optional, a date, and may be over: that fails the run. Raises KnownFailureError for
    anything else: a wrong type, an unknown or repeated id, a member that is not among the three.
    """
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        problem = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "nested too deep"
        raise KnownFailureError(f"not TOML: {problem}") from None
    others = sorted(found.keys() - {_TABLE})
    if others:
        raise KnownFailureError(f"{others[0]!r} is not known here; write {_EXAMPLE}")
    entries = found.get(_TABLE)
    if not isinstance(entries, list) or not entries:
        raise KnownFailureError(f"no entry; write {_EXAMPLE}")
    known: list[KnownFailure] = []
    for number, entry in enumerate(entries, 1):
        try:
            known.append(_entry(entry, today))
        except KnownFailureError as error:
            raise KnownFailureError(f"entry {number}: {error}") from None
        if known[-1].id in {one.id for one in known[:-1]}:
            raise KnownFailureError(f"entry {number}: {known[-1].id} is listed twice; keep one")
    return tuple(known)


def _entry(entry: object, today: date) -> KnownFailure:
    if not isinstance(entry, Mapping):
        raise KnownFailureError(f"not a table; write {_EXAMPLE}")
    others = sorted(entry.keys() - set(_MEMBERS))
    if others:
        raise KnownFailureError(f"{others[0]!r} is none of {', '.join(_MEMBERS)}; take it out")
    until = _until(entry.get("until"))
    return KnownFailure(
        id=_id(entry.get("id")),
        because=_because(entry.get("because")),
        until=until,
        expired=until is not None and until < today,
    )


def _id(value: object) -> str:
    if not isinstance(value, str):
        raise KnownFailureError('id: must be the id of a rule, such as "stream/usage-alone"')
    if value in RETIRED:
        raise KnownFailureError(f"id: {value} is retired; {RETIRED[value]} took its place")
    if value in BY_ID:
        return value
    try:
        select([value])
    except SelectionError as error:
        raise KnownFailureError(f"id: {error}") from None
    raise KnownFailureError(f"id: {value!r} is a pattern; name each rule, with its own reason")


def _because(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text:
        raise KnownFailureError("because: is missing; say in a sentence why this is accepted")
    if len(text) > _BECAUSE:
        raise KnownFailureError(f"because: has {len(text)} characters; {_BECAUSE} must do")
    return text


def _until(value: object) -> date | None:
    if value is None:
        return None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise KnownFailureError("until: must be a date without quotes, such as 2026-12-01")
    return value
