"""The judgement of a run as one JSON document, in a stable order: two runs can be compared."""

import json
from typing import Any

from cheapgpu import __version__
from cheapgpu.core.findings import Finding, Judgement, Outcome
from cheapgpu.core.messages import Usage
from cheapgpu.core.rules import BY_ID
from cheapgpu.report.known import KnownFailure
from cheapgpu.report.run import Run

Document = dict[str, Any]


def document(run: Run) -> Document:
    """Return the document: exchanges in their order, rules by id, findings as they were made.

    Its JSON Schema is `report.schema.json` beside this module. `verdict` is what was proven;
    `standing` decides the exit code: known failures excused, strict as asked. Rules that pass
    have a finding only where it holds evidence; a rule with outcome `skip` has a `reason`. Times
    are seconds since the request began, places are bytes of the body.
    """
    return {
        "profile": run.profile,
        "tool": f"cheapgpu {__version__}",
        "target": run.target or None,
        "source": run.source or None,
        "model": run.model or None,
        "started": run.started,
        "verdict": run.report.verdict,
        "standing": run.standing,
        "strict": run.strict,
        "looked_at": {"rules": run.looked_at, "of": len(run.report.rules)},
        "counts": {outcome.word: run.counts[outcome] for outcome in Outcome},
        "known": [_known(run, entry) for entry in run.known],
        "exchanges": [_exchange(run, judgement) for judgement in run.report.judgements],
        "rules": [_rule(run, rule) for rule in sorted(run.report.rules)],
    }


def to_json(value: object) -> str:
    """Return JSON for a terminal or a file: ASCII only, so that no text in it can do anything."""
    text = json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False)
    return text.replace("\x7f", "\\u007f") + "\n"


def _exchange(run: Run, judgement: Judgement) -> Document:
    return {
        "case": judgement.case,
        "outcome": judgement.outcome,
        "finish_reason": judgement.finish_reason,
        "usage": _usage(judgement.usage),
        "broken": run.broken(judgement),
        "advice": run.advice(judgement),
        "notes": dict(sorted(judgement.notes.items())),
    }


def _known(run: Run, entry: KnownFailure) -> Document:
    return {
        "id": entry.id,
        "because": entry.because,
        "until": entry.until.isoformat() if entry.until else None,
        "state": run.state_of(entry),
    }


def _usage(usage: Usage | None) -> Document | None:
    if usage is None:
        return None
    return {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}


def _rule(run: Run, rule: str) -> Document:
    outcome = run.report.rules[rule]
    found: Document = {"id": rule, "level": BY_ID[rule].level, "outcome": outcome.word}
    if outcome is Outcome.SKIP:
        found["reason"] = run.why_skipped(rule)
    found["findings"] = [
        _finding(judgement.case, finding)
        for judgement in run.report.judgements
        for finding in judgement.findings
        if finding.rule == rule and run.is_shown(finding) and _tells(finding)
    ]
    return found


def _tells(finding: Finding) -> bool:
    return finding.outcome is not Outcome.PASS or bool(finding.observed)


def _finding(case: str, finding: Finding) -> Document:
    return {
        "case": case,
        "at": finding.at,
        "length": finding.length,
        "event": finding.event,
        "t": None if finding.t is None else round(finding.t, 6),
        "expected": finding.expected,
        "observed": finding.observed,
        "follows": finding.follows,
        "count": finding.count,
        "outcome": finding.outcome.word,
    }
