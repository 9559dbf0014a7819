"""One rule that is not as it should be, as a terminal shows it: a block of lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cheapgpu.core.exchange import How
from cheapgpu.core.findings import NOT_WHOLE, Outcome
from cheapgpu.core.rules import Rule
from cheapgpu.report.excerpt import end_excerpt, excerpt, tail
from cheapgpu.report.run import Run
from cheapgpu.report.sightings import Sighting, consequences, in_part, sightings
from cheapgpu.report.style import Colour, Style, columns, join, number, wrap

GLYPHS: Final[dict[Outcome, tuple[str, str, Colour]]] = {
    Outcome.FAIL: ("✗", "x", "red"),
    Outcome.ERROR: ("?", "?", "yellow"),
    Outcome.UNKNOWN: ("?", "?", "yellow"),
    Outcome.ADVICE: ("!", "!", "cyan"),
}
_KNOWN: Final[tuple[str, str, Colour]] = ("~", "~", "cyan")
ENDINGS: Final[dict[How, str]] = {
    "chunked-end": "ended by its last chunk",
    "length": "ended at its announced length",
    "eof": "ended with the connection",
    "closed-after-done": "closed by us after [DONE]",
    "reset": "ended by a reset",
    "timeout": "we stopped waiting",
    "deadline": "cut at the deadline",
    "cancelled": "cancelled by us",
    "left": "left by us on purpose",
    "unstated": "how it ended is not recorded",
}
#: The rule whose fault is what does not follow the last byte.
_LINE_ENDS: Final = "stream/events-complete"
#: What is judged by the head of an answer: areas as a whole, and names in any area.
_HEAD_AREAS: Final = ("auth", "refuse", "accepted")
_HEAD_NAMES: Final = ("status", "content-type", "content-encoding")
_INDENT: Final = "  "
_EXCERPT: Final = "      "
_NOT_COUNTED: Final = "follows from this and is not counted"
_CASES: Final = 3
_KINDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A rule with all that was found of it."""

    rule: Rule
    #: The findings, alike ones together; at least one.
    kinds: Sequence[Sighting]
    #: Further rules that are broken in just the same way.
    alike: Sequence[str] = ()


def rule_block(
    run: Run, block: Block, style: Style, *, show_end: bool = True, everything: bool = False
) -> list[str]:
    """Return the lines of a block: what the rule says, what was found, and what follows from it.

    `show_end` says whether the end of a body that is not whole is shown here; `everything`, whether
    each kind of finding is.
    """
    rule, kinds = block.rule, block.kinds
    outcome = kinds[0].finding.outcome
    cases = list(dict.fromkeys(case for kind in kinds for case in kind.cases))
    shown = kinds if everything else kinds[:_KINDS]
    excuse = run.excuse(rule.id)
    lines = _title(rule, outcome, cases, style, known=excuse is not None)
    lines += wrap(style.text(rule.sentence), style.width, first=_INDENT)
    if excuse is not None:
        lines += _field("known", excuse.reason, style)
    lines += _kinds(shown, style, show_end=show_end)
    if len(shown) < len(kinds):
        more = number(len(kinds) - len(shown), "more kind")
        lines += wrap(f"{more} of this: -v shows all", style.width, first=_INDENT)
    if block.alike:
        alike = ", ".join(_in_part(run, other) for other in block.alike)
        lines += _field("alike", f"{len(block.alike)} more: {alike}", style)
    last = [] if len(kinds) > 1 else _often(kinds[0])
    if rule.area == "refuse":
        _, holds = in_part(run, rule.id)
        last += [f"holds in {named(holds)}"] if holds else []
    lines += _phrases([*last, *rule.citation.split(" · ")], style)
    for other, observed in consequences(run, rule.id).items():
        lines += _consequence(run, other, observed, style)
    return lines


def findings_of(run: Run, rule: Rule, style: Style) -> list[str]:
    """Return the lines of all that was found of a rule, without what the rule itself says."""
    lines = _kinds(sightings(run, rule.id, run.report.rules[rule.id]), style, show_end=True)
    for other, observed in consequences(run, rule.id).items():
        lines += _consequence(run, other, observed, style)
    return lines


def rule_title(rule: Rule, facts: Sequence[str], style: Style, *, glyph: str = "") -> list[str]:
    """The first line of a rule: its id on the left, and facts at the right end or on a second line.

    `glyph` is safe and painted already; it takes the two columns of the indent.
    """
    by = style.text(" · ")
    safe = [style.text(fact) for fact in facts]
    right = by.join(safe)
    space = style.width - len(_INDENT if glyph else "") - len(rule.id) - columns(right)
    if space >= 2:
        return [f"{glyph}{rule.id}{' ' * space}{right}"]
    return [f"{glyph}{rule.id}", *join(safe, style.width, first=_INDENT, by=by)]


def seconds(t: float) -> str:
    """A time since the request began, as reports write it."""
    return f"+{t:.3f} s"


def named(cases: Sequence[str]) -> str:
    """A few cases by name, and how many more there are."""
    if len(cases) <= _CASES:
        return ", ".join(cases)
    return f"{', '.join(cases[: _CASES - 1])} and {len(cases) - _CASES + 1} more"


def _title(
    rule: Rule, outcome: Outcome, cases: Sequence[str], style: Style, *, known: bool
) -> list[str]:
    letter, plain, colour = _KNOWN if known else GLYPHS[outcome]
    glyph = style.paint(plain if style.ascii else letter, colour)
    word = [outcome.word] if outcome in (Outcome.UNKNOWN, Outcome.ERROR) else []
    word += ["known"] if known else []
    return rule_title(rule, [rule.level, *word, named(cases)], style, glyph=f"{glyph} ")


def _kinds(kinds: Sequence[Sighting], style: Style, *, show_end: bool) -> list[str]:
    lines: list[str] = []
    for kind in kinds:
        if lines:
            lines.append("")
        lines += _sighting(kind, style, show_end=show_end)
        if len(kinds) > 1:
            lines += _phrases(_often(kind), style)
    return lines


def _sighting(sighting: Sighting, style: Style, *, show_end: bool) -> list[str]:
    finding, exchange = sighting.finding, sighting.exchange
    width = style.width - len(_EXCERPT)
    body = exchange.body
    lines: list[str] = []
    shown: list[str] = []
    if finding.at is not None and body:
        if finding.rule == _LINE_ENDS:
            shown = end_excerpt(body, finding.at, style, width)
        else:
            shown = excerpt(body, finding.at, finding.length, style, width)
    elif finding.rule in NOT_WHOLE and show_end and body:
        shown = tail(body, style, width)
    lines += _phrases(_place(sighting), style)
    lines += [f"{_EXCERPT}{line}" for line in shown]
    if finding.expected:
        lines += _field("expected", finding.expected, style)
    if finding.observed:
        lines += _field("observed", finding.observed, style)
    return lines


def _place(sighting: Sighting) -> list[str]:
    """Where in the body, in which event and when: as far as the finding tells."""
    finding, exchange = sighting.finding, sighting.exchange
    body = exchange.body
    events = sighting.judgement.notes.get("events")
    place: list[str] = []
    if finding.at is not None:
        place.append(f"body {finding.at}")
        if finding.event is not None:
            of = f" of {events}" if events else ""
            place.append(f"event {finding.event}{of}")
        if finding.t is not None:
            place.append(seconds(finding.t))
    elif finding.rule in NOT_WHOLE or finding.outcome in (Outcome.UNKNOWN, Outcome.ERROR):
        place.append(number(len(body), "byte") if exchange.head or body else "no answer")
        if events is not None:
            place.append(number(events, "event"))
        ending = ENDINGS[exchange.closed.how]
        timed = exchange.timed
        place.append(f"{ending} at {seconds(exchange.closed.t)}" if timed else ending)
    elif exchange.head is not None and _is_of_head(finding.rule):
        place.append(f"answer {exchange.head.status}")
        if exchange.timed:
            place.append(seconds(exchange.head.t))
    return place


def _in_part(run: Run, rule: str) -> str:
    """A rule, with the cases that broke it where others of its cases did not."""
    broke, _ = in_part(run, rule)
    return f"{rule} ({named(broke)})" if broke else rule


def _is_of_head(rule: str) -> bool:
    """Whether a rule is judged by the head of the answer."""
    area, _, name = rule.partition("/")
    return area in _HEAD_AREAS or name in _HEAD_NAMES


def _often(sighting: Sighting) -> list[str]:
    """In how many events of the answer, and in which other cases, it is likewise."""
    finding = sighting.finding
    often: list[str] = []
    events = sighting.judgement.notes.get("events")
    if finding.count > 1:
        of = f" of {events}" if events and finding.event is not None else ""
        what = "events" if finding.event is not None else "places"
        often.append(f"likewise in {finding.count}{of} {what}")
    if len(sighting.cases) > 1:
        often.append(f"likewise in {named(sighting.cases[1:])}")
    return often


def _consequence(run: Run, rule: str, observed: Sequence[str], style: Style) -> list[str]:
    counted = run.report.rules.get(rule, Outcome.SKIP) is Outcome.FAIL
    known = "follows from this, and breaks by itself elsewhere" if counted else _NOT_COUNTED
    seen = f": {'; '.join(one for one in observed if one)}" if any(observed) else ""
    text = style.text(f"{rule} {known}{seen}")
    return wrap(text, style.width, first=_INDENT + style.text("↳ "))


def _field(name: str, value: str, style: Style) -> list[str]:
    return wrap(style.text(value), style.width, first=f"{_INDENT}{name:<8}  ")


def _phrases(phrases: Sequence[str], style: Style) -> list[str]:
    if not phrases:
        return []
    safe = [style.text(phrase) for phrase in phrases]
    return join(safe, style.width, first=_INDENT, by=style.text(" · "))
