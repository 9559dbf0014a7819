"""One rule that is not as it should be, in a line or as a block, for formats that quote it."""

from typing import Final

from cheapgpu.core.findings import Outcome
from cheapgpu.core.rules import BY_ID
from cheapgpu.report.block import Block, named, rule_block
from cheapgpu.report.known import KnownFailure
from cheapgpu.report.run import Run
from cheapgpu.report.sightings import sightings
from cheapgpu.report.style import Style

#: The longest line, in characters.
_MOST: Final = 400
_PLAIN: Final = Style()


def gist(run: Run, rule: str) -> str:
    """Return in one safe line what was wanted of a rule, what was seen, and where."""
    outcome = run.report.rules[rule]
    if outcome is Outcome.SKIP:
        return line(run.why_skipped(rule))
    kinds = sightings(run, rule, outcome)
    if not kinds:
        return line(BY_ID[rule].sentence)
    finding = kinds[0].finding
    cases = list(dict.fromkeys(case for kind in kinds for case in kind.cases))
    words = [f"expected {finding.expected}"] if finding.expected else []
    if finding.observed:
        words.append(f"observed {finding.observed}" if words else finding.observed)
    said = "; ".join(words) or BY_ID[rule].sentence.rstrip(".")
    place = named(cases) if finding.at is None else f"{named(cases)}, body {finding.at}"
    return line(f"{said} ({place})")


def block_of(run: Run, rule: str) -> str:
    """Return the block that the terminal report has of a rule, without colour; "" if it has none.

    Every line is safe to print and ends with a line end.
    """
    kinds = sightings(run, rule, run.report.rules[rule])
    if not kinds:
        return ""
    block = Block(rule=BY_ID[rule], kinds=kinds)
    return "".join(f"{one}\n" for one in rule_block(run, block, _PLAIN))


def outdated(run: Run, entry: KnownFailure) -> str:
    """Return in one safe line why a known failure no longer holds, and what to do."""
    if run.state_of(entry) == "expired":
        return line(
            f"known failure, accepted until {entry.until}, and that day is over: mend the endpoint,"
            f" or give a new date ({entry.because})"
        )
    return line(f"known failure that passes: take it out of the list ({entry.because})")


def line(text: str) -> str:
    """Return text as one line that is safe wherever text is, cut where it is too long."""
    safe = _PLAIN.text(text)
    return safe if len(safe) <= _MOST else f"{safe[: _MOST - 1]}…"
