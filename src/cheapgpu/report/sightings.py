"""Findings of one rule over all exchanges, those that are alike taken together."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import Finding, Judgement, Outcome
from cheapgpu.report.run import Run

#: What differs between findings that are alike: ids, models, numbers; but not a status in front.
_PARTICULAR: Final = re.compile(r'"[^"]*"|(?<!\d)(?!^[1-5]\d\d\b)\d+(?:\.\d+)?')
_STATUSES: Final = re.compile(r"\d{3}(?: or \d{3})*")


@dataclass(slots=True, kw_only=True)
class Sighting:
    """The first finding of its kind, where it was made, and the cases in which others are alike."""

    finding: Finding
    exchange: Exchange
    judgement: Judgement
    #: Each case once, in the order of the run, the first finding's included.
    cases: list[str] = field(default_factory=list)


def sightings(run: Run, rule: str, outcome: Outcome) -> list[Sighting]:
    """Return the findings of a rule that gave `outcome` by themselves, alike ones together."""
    kinds: dict[tuple[str, str], Sighting] = {}
    for exchange, judgement, finding in _findings(run):
        if finding.rule != rule or finding.outcome is not outcome or finding.follows is not None:
            continue
        kind = kind_of(finding)
        sighting = kinds.get(kind)
        if sighting is None:
            sighting = kinds[kind] = Sighting(
                finding=finding, exchange=exchange, judgement=judgement
            )
        if exchange.case not in sighting.cases:
            sighting.cases.append(exchange.case)
    return list(kinds.values())


def consequences(run: Run, rule: str) -> dict[str, list[str]]:
    """Return the rules that fail merely because `rule` does: what was seen of each, each once."""
    found: dict[str, list[str]] = {}
    for _, _, finding in _findings(run):
        if finding.follows == rule:
            seen = found.setdefault(finding.rule, [])
            if finding.observed not in seen:
                seen.append(finding.observed)
    return found


def in_part(run: Run, rule: str) -> tuple[list[str], list[str]]:
    """Return the cases that broke a rule and those in which it holds; none where it never holds."""
    outcome = run.report.rules[rule]
    looked = [(exchange.case, judgement.rules.get(rule)) for exchange, judgement in run.pairs()]
    holds = list(dict.fromkeys(case for case, one in looked if one is Outcome.PASS))
    broke = list(dict.fromkeys(case for case, one in looked if one is outcome))
    return (broke, holds) if holds else ([], [])


def kind_of(finding: Finding) -> tuple[str, str]:
    """What was wanted and what was seen, without what differs between cases of one fault."""
    return _general(finding.expected), _general(finding.observed)


def _general(text: str) -> str:
    return text if _STATUSES.fullmatch(text) else _PARTICULAR.sub("#", text)


def _findings(run: Run) -> Iterator[tuple[Exchange, Judgement, Finding]]:
    for exchange, judgement in run.pairs():
        for finding in judgement.findings:
            yield exchange, judgement, finding
