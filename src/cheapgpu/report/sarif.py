"""Runs as SARIF 2.1.0 (OASIS), as code scanning reads it: a result for each rule and case.

A body that was received is an artifact nested in the recording; a place in it is a region in bytes,
and in lines and columns too where it is UTF-8. Bodies themselves are not quoted.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

from cheapgpu import __version__
from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import Finding, Outcome
from cheapgpu.core.rules import RULES, Rule
from cheapgpu.report.document import to_json
from cheapgpu.report.gist import line, outdated
from cheapgpu.report.known import KnownFailure
from cheapgpu.report.run import Run

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
#: The name of what a fingerprint is made of; a new recipe gets a new number.
_FINGERPRINT: Final = "ruleAndCase/v1"
_INDEX: Final = {rule.id: index for index, rule in enumerate(RULES)}
#: What kind of result an outcome is, and its level (section 3.27.10: none where nothing failed).
_KINDS: Final = {
    Outcome.FAIL: ("fail", "error"),
    Outcome.ADVICE: ("fail", "warning"),
    Outcome.UNKNOWN: ("open", "none"),
    Outcome.ERROR: ("open", "none"),
}
_Object = dict[str, Any]


def sarif(runs: Sequence[Run], docs: str = "") -> str:
    """Return the log: a run for each run, a result for each rule and case that is not as it should.

    Broken rules are errors, advice is a warning (an error, if strict), what could not be decided is
    open. Known failures are suppressed, with their reason. `docs` is the absolute address of the
    page with the rules, if there is one: a rule's `helpUri` is its heading there.
    """
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(run, docs) for run in runs]}
    return to_json(log)


def _run(run: Run, docs: str) -> _Object:
    driver: _Object = {
        "name": "cheapgpu",
        "semanticVersion": __version__,
        "rules": [_descriptor(rule, docs) for rule in RULES],
    }
    if docs:
        driver["informationUri"] = docs
    artifacts = _artifacts(run)
    results = [*_results(run), *(_outdated(run, entry) for entry in run.outdated)]
    return {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{run.profile}/{quote(line(run.target), safe='')}/"},
        "columnKind": "unicodeCodePoints",
        "artifacts": artifacts,
        "results": results,
        "properties": {
            "profile": line(run.profile),
            "target": line(run.target),
            "model": line(run.model),
            "recorded": run.started,
            "verdict": run.report.verdict,
            "standing": run.standing,
        },
    }


def _descriptor(rule: Rule, docs: str) -> _Object:
    anchor = rule.id.replace("/", "")
    address = {"helpUri": f"{docs}#{anchor}"} if docs else {}
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.sentence},
        "fullDescription": {"text": f"{rule.sentence} {rule.why}"},
        "help": {"text": f"{rule.why}\n\n{rule.citation}\n\ncheapgpu explain {rule.id}"},
        **address,
        "defaultConfiguration": {"level": "error" if rule.level == "MUST" else "warning"},
        "properties": {"level": rule.level, "citation": rule.citation, "tags": [rule.area]},
    }


def _artifacts(run: Run) -> list[_Object]:
    """The recording, then the body of each exchange, in their order."""
    recording = {"location": {"uri": _address(run)}, "roles": ["analysisTarget"]}
    bodies = [
        {
            "location": {"uri": _path(run, number)},
            "parentIndex": 0,
            "length": len(exchange.body),
            "description": {"text": f"the body received in {line(exchange.case)}"},
        }
        for number, exchange in enumerate(run.exchanges)
    ]
    return [recording, *bodies]


def _address(run: Run) -> str:
    """What the input is called, as a relative URI reference."""
    return quote(run.source or "recording", safe="/._-~")


def _path(run: Run, number: int) -> str:
    """Where the body of an exchange is in its recording: its case, and its number if repeated."""
    case = run.exchanges[number].case
    before = sum(exchange.case == case for exchange in run.exchanges[:number])
    return f"/{quote(case, safe='', errors='replace')}{f'/{before + 1}' if before else ''}"


def _results(run: Run) -> Iterator[_Object]:
    for rule in RULES:
        outcome = run.report.rules[rule.id]
        if outcome not in _KINDS:
            continue
        cases: dict[str, list[tuple[int, Finding]]] = {}
        for number, (exchange, judgement) in enumerate(run.pairs()):
            for finding in judgement.findings:
                if (finding.rule, finding.outcome, finding.follows) == (rule.id, outcome, None):
                    cases.setdefault(exchange.case, []).append((number, finding))
        for case, found in cases.items():
            yield _result(run, rule, case, found)


def _result(run: Run, rule: Rule, case: str, found: list[tuple[int, Finding]]) -> _Object:
    """One rule in one case: its first place, and the others as related."""
    outcome = found[0][1].outcome
    kind, level = _KINDS[outcome]
    if outcome is Outcome.ADVICE and run.strict:
        level = "error"
    first, *others = found
    result: _Object = {
        "ruleId": rule.id,
        "ruleIndex": _INDEX[rule.id],
        "kind": kind,
        "level": level,
        "message": {"text": _message(rule, case, first[1])},
        "locations": [_location(run, *first)],
        "partialFingerprints": {_FINGERPRINT: f"{rule.id}:{line(case)}"},
        "occurrenceCount": sum(finding.count for _, finding in found),
    }
    if others:
        result["relatedLocations"] = [_location(run, *other) for other in others]
    excuse = run.excuse(rule.id)
    if excuse is not None:
        result["suppressions"] = [_suppression(excuse)]
    return result


def _message(rule: Rule, case: str, finding: Finding) -> str:
    seen = f" Observed: {finding.observed}." if finding.observed else ""
    wanted = f" Expected: {finding.expected}." if finding.expected else ""
    undecided = {Outcome.UNKNOWN: " Not decided.", Outcome.ERROR: " Could not be looked at."}
    return line(f"{case}: {rule.sentence}{undecided.get(finding.outcome, '')}{seen}{wanted}")


def _location(run: Run, number: int, finding: Finding) -> _Object:
    exchange = run.exchanges[number]
    place: _Object = {"artifactLocation": {"uri": _path(run, number), "index": number + 1}}
    if finding.at is not None:
        place["region"] = _region(exchange, finding.at, finding.length)
    event = "" if finding.event is None else f"/event {finding.event}"
    return {
        "physicalLocation": place,
        "logicalLocations": [{"fullyQualifiedName": f"{line(exchange.case)}{event}"}],
        "message": {"text": line(finding.observed or finding.outcome.word)},
    }


def _region(exchange: Exchange, at: int, length: int) -> _Object:
    """A place in a body: bytes, and the same in lines and columns where those can be counted."""
    region: _Object = {"byteOffset": at, "byteLength": length}
    body = exchange.body
    try:
        before, inside = body[:at].decode(), body[at : at + length].decode()
    except UnicodeDecodeError:
        return region
    line_number, column = _position(before)
    end_line, end_column = _position(before + inside)
    return region | {
        "startLine": line_number,
        "startColumn": column,
        "endLine": end_line,
        "endColumn": end_column,
    }


def _position(text: str) -> tuple[int, int]:
    """Line and column, from 1, of what follows `text`; a line ends with LF (section 3.14.18)."""
    return text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1


def _outdated(run: Run, entry: KnownFailure) -> _Object:
    """A known failure that no longer holds: it fails the run, so it is a result."""
    return {
        "ruleId": entry.id,
        "ruleIndex": _INDEX[entry.id],
        "kind": "fail",
        "level": "error",
        "message": {"text": outdated(run, entry)},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": _address(run), "index": 0}}}
        ],
        "partialFingerprints": {_FINGERPRINT: f"{entry.id}:known"},
    }


def _suppression(entry: KnownFailure) -> _Object:
    return {"kind": "external", "status": "accepted", "justification": line(entry.reason)}
