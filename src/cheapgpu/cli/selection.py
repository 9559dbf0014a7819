"""What decides: which rules were chosen, which failures are known, and whether advice counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from cheapgpu.cli.options import OptionError
from cheapgpu.core.findings import Outcome, verdict
from cheapgpu.core.rules import RULES, select
from cheapgpu.core.verify import Report
from cheapgpu.report.known import KnownFailure, KnownFailureError, read_known
from cheapgpu.report.run import NOT_SELECTED, Run

#: A list of known failures with more bytes than this is none.
_KNOWN_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What decides in a run, as the options of a command say."""

    chosen: frozenset[str]
    known: tuple[KnownFailure, ...] = ()
    strict: bool = False


def terms_of(
    only: Sequence[str] | None,
    skip: Sequence[str] | None,
    known: Path | None,
    *,
    strict: bool,
) -> Terms:
    """Read `--only`, `--skip`, `--known` and `--strict`.

    Raises SelectionError for a pattern that matches nothing, OptionError for a list of known
    failures that cannot be used. An entry whose rule is not chosen is left out, date and all.
    """
    chosen = selected(only or [], skip or [])
    entries = _known(known) if known is not None else ()
    return Terms(
        chosen=chosen, known=tuple(one for one in entries if one.id in chosen), strict=strict
    )


def decided(run: Run, terms: Terms) -> Run:
    """Return a run in which only what the terms say decides."""
    report = narrow(run.report, terms.chosen)
    return replace(run, report=report, known=terms.known, strict=terms.strict)


def _known(file: Path) -> tuple[KnownFailure, ...]:
    try:
        with file.open("rb") as opened:
            data = opened.read(_KNOWN_BYTES + 1)
    except OSError as error:
        raise OptionError(f"--known: {file}: {error.strerror}") from None
    if len(data) > _KNOWN_BYTES:
        raise OptionError(f"--known: {file} is over {_KNOWN_BYTES >> 20} MiB; it must be a list")
    try:
        return read_known(data.decode(), today=datetime.now().astimezone().date())
    except UnicodeDecodeError:
        raise OptionError(f"--known: {file} is not UTF-8; save it as UTF-8") from None
    except KnownFailureError as error:
        raise OptionError(f"--known: {file}: {error}") from None


def selected(only: Sequence[str], skip: Sequence[str]) -> frozenset[str]:
    """Return the ids of the rules that are named by `only` (all, if nothing is) and not by `skip`.

    Raises SelectionError for a pattern that matches nothing, with the ids nearest to it.
    """
    chosen = {rule.id for rule in (select(only) if only else RULES)}
    return frozenset(chosen - {rule.id for rule in select(skip)})


def narrow(report: Report, chosen: frozenset[str]) -> Report:
    """Return a report in which the rules that were not chosen were not looked at.

    What each exchange proves stays as it is: money follows from that, whatever is selected.
    """
    if len(chosen) == len(RULES):
        return report
    outcomes = {
        rule: outcome if rule in chosen else Outcome.SKIP for rule, outcome in report.rules.items()
    }
    must = [outcomes[rule.id] for rule in RULES if rule.level == "MUST"]
    reasons = {rule: NOT_SELECTED for rule in report.rules if rule not in chosen}
    return replace(
        report,
        verdict=verdict(must, report.judgements),
        rules=outcomes,
        skipped=report.skipped | reasons,
    )
