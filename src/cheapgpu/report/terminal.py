"""The report of a run on a terminal: what holds in a line, what does not in full."""

import re
from collections import Counter
from dataclasses import replace
from typing import Final, Literal

from cheapgpu import __version__
from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import NOT_WHOLE, Judgement, Outcome
from cheapgpu.core.rules import AREAS, BY_ID, RULES
from cheapgpu.report.block import ENDINGS, GLYPHS, Block, rule_block, rule_title, seconds
from cheapgpu.report.gist import outdated
from cheapgpu.report.reasons import open_reasons, standing_reasons
from cheapgpu.report.run import Run
from cheapgpu.report.sightings import consequences, kind_of, sightings
from cheapgpu.report.style import Style, columns, join, number, wrap

#: `brief` the verdict alone · `usual` what is not as it should be · `full` what holds, too.
Detail = Literal["brief", "usual", "full"]

_INDENT: Final = "  "
_MEMBER: Final = re.compile(r"^\S+: (?=\d{3}\b)")
#: The order in which a report has its blocks.
_BLOCKS: Final = (Outcome.FAIL, Outcome.ERROR, Outcome.UNKNOWN, Outcome.ADVICE)
_REASONS: Final = 5
#: What the line of an exchange says in any case, of its notes.
_SHOWN_ANYWAY: Final = ("events", "bytes", "reads", "duration_ms")


def terminal_report(run: Run, style: Style, detail: Detail = "usual") -> str:
    """Return the report of a run as text that ends with a line end.

    Everything that came from outside is made safe to print; the width is that of `style`.
    """
    if detail == "brief":
        return style.text(" · ".join(_conclusion(run, run.source))) + "\n"
    everything = detail == "full"
    lines = _head(run, style)
    if len(run.exchanges) == 1:
        lines += _exchanges(run, style, notes=everything)
    elif everything:
        lines += ["", *_exchanges(run, style, notes=True)]
    lines += ["", *_areas(run, style)]
    for block in _blocks(run, style, everything=everything):
        lines += ["", *block]
    if everything:
        lines += _the_rest(run, style)
    lines += _outdated(run, style)
    conclusion = [style.text(phrase) for phrase in _conclusion(run)]
    lines += ["", *join(conclusion, style.width, by=style.text(" · "))]
    for reason in standing_reasons(run):
        lines += wrap(style.text(reason), style.width, first=_INDENT)
    lines += _reasons(run, style, everything=everything)
    if run.report.verdict == "not established":
        lines.append("")
    lines += _commands(run, style)
    return "\n".join(lines) + "\n"


def _head(run: Run, style: Style) -> list[str]:
    by = style.text(" · ")
    first = [f"cheapgpu {__version__}", run.profile, run.target or run.source]
    second = [run.source] if run.target and run.source else []
    second += run.about
    if len(run.exchanges) != 1:
        second.append(number(len(run.exchanges), "exchange"))
    lines = join([style.text(part) for part in first if part], style.width, by=by)
    lines += join([style.text(part) for part in second], style.width, by=by)
    return lines


def _areas(run: Run, style: Style) -> list[str]:
    """A line for each area of which anything was looked at."""
    lines: list[str] = []
    untouched: list[str] = []
    for area in AREAS:
        counts = Counter(
            outcome for rule, outcome in run.report.rules.items() if rule.startswith(f"{area}/")
        )
        if set(counts) == {Outcome.SKIP}:
            untouched.append(area)
            continue
        counts[Outcome.SKIP] -= sum(
            rule.startswith(f"{area}/") and reason.startswith("follows from ")
            for rule, reason in _skips(run)
        )
        phrases = [f"{counts[Outcome.PASS]:>3} pass", *_counted(counts, but=Outcome.PASS)]
        lines += join(phrases, style.width, first=f"{_INDENT}{area:<8} ", by=style.text(" · "))
    if untouched and lines:
        lines += wrap(f"not looked at: {', '.join(untouched)}", style.width, first=_INDENT)
    return lines


def _counted(counts: Counter[Outcome], *, but: Outcome | None = None) -> list[str]:
    """The outcomes in words: passes, then the worst first, skips last."""
    order = (
        Outcome.PASS,
        Outcome.FAIL,
        Outcome.ERROR,
        Outcome.UNKNOWN,
        Outcome.ADVICE,
        Outcome.SKIP,
    )
    return [f"{counts[one]} {one.word}" for one in order if counts[one] and one is not but]


def _blocks(run: Run, style: Style, *, everything: bool) -> list[list[str]]:
    lines: list[list[str]] = []
    ends_shown: set[int] = set()
    for outcome in _BLOCKS:
        for block in blocks_of(run, outcome):
            ends = {id(kind.exchange) for kind in block.kinds if kind.finding.at is None}
            show_end = not ends & ends_shown
            lines.append(rule_block(run, block, style, show_end=show_end, everything=everything))
            if block.rule.id in NOT_WHOLE:
                ends_shown |= ends
    return lines


def blocks_of(run: Run, outcome: Outcome) -> list[Block]:
    """Return the rules of an outcome, those of `refuse/` that say the same in one block."""
    blocks: list[Block] = []
    shared: dict[tuple[str, ...], list[str]] = {}
    for rule in RULES:
        kinds = sightings(run, rule.id, outcome)
        if run.report.rules[rule.id] is not outcome or not kinds:
            continue
        alike: list[str] = []
        if rule.area == "refuse" and len(kinds) == 1 and not consequences(run, rule.id):
            finding = kinds[0].finding
            # core says in front which member it is about, which is what the rules differ in.
            kind = kind_of(replace(finding, observed=_MEMBER.sub("", finding.observed)))
            excuse = run.excuse(rule.id)
            key = (*kind, excuse.reason if excuse else "")
            if key in shared:
                shared[key].append(rule.id)
                continue
            shared[key] = alike
        blocks.append(Block(rule=rule, kinds=kinds, alike=alike))
    return blocks


def _outdated(run: Run, style: Style) -> list[str]:
    """The known failures that no longer hold: they fail the run."""
    lines: list[str] = []
    letter, plain, colour = GLYPHS[Outcome.FAIL]
    glyph = style.paint(plain if style.ascii else letter, colour)
    for entry in run.outdated:
        title = rule_title(BY_ID[entry.id], ["known failure"], style, glyph=f"{glyph} ")
        text = style.text(outdated(run, entry))
        lines += ["", *title, *wrap(text, style.width, first=_INDENT)]
    return lines


def _exchanges(run: Run, style: Style, *, notes: bool) -> list[str]:
    """Each exchange in a line or two, and what was measured of it."""
    lines: list[str] = []
    by = style.text(" · ")
    for exchange, judgement in run.pairs():
        lines += _exchange(exchange, judgement, style)
        measured = [
            f"{name.replace('_', ' ')} {_note(value)}"
            for name, value in judgement.notes.items()
            if notes and name not in _SHOWN_ANYWAY
        ]
        if measured:
            lines += join([style.text(note) for note in measured], style.width, first="  ", by=by)
    return lines


def _note(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return "yes" if value is True else str(value)


def _exchange(exchange: Exchange, judgement: Judgement, style: Style) -> list[str]:
    """One exchange in a line: what it proves, and what it was like."""
    facts = [f"{exchange.case}: {judgement.outcome}"]
    if exchange.head is not None:
        facts.append(f"{exchange.head.status} {exchange.head.header('content-type') or ''}".strip())
    if judgement.finish_reason:
        facts.append(f"finish {judgement.finish_reason}")
    if judgement.usage is not None:
        usage = judgement.usage
        facts.append(f"usage {usage.prompt_tokens} in, {usage.completion_tokens} out")
    if (events := judgement.notes.get("events")) is not None:
        facts.append(number(events, "event"))
    if exchange.head is not None or exchange.reads:
        reads = f" in {number(len(exchange.reads), 'read')}" if exchange.timed else ""
        facts.append(f"{number(len(exchange.body), 'byte')}{reads}")
    else:
        facts.append("no answer")
    if exchange.timed:
        facts.append(f"{ENDINGS[exchange.closed.how]} at {seconds(exchange.closed.t)}")
    by = style.text(" · ")
    return join([style.text(fact) for fact in facts], style.width, rest=_INDENT, by=by)


def _the_rest(run: Run, style: Style) -> list[str]:
    """The rules that hold, with the evidence where there is any, and those not looked at."""
    lines: list[str] = []
    passed = [rule.id for rule in RULES if run.report.rules[rule.id] is Outcome.PASS]
    if passed:
        lines += ["", *join(passed, style.width, first="pass  ", by=", ")]
    for rule in passed:
        for sighting in sightings(run, rule, Outcome.PASS):
            if sighting.finding.observed:
                text = style.text(f"{rule}: {sighting.finding.observed}")
                lines += wrap(text, style.width, first=" " * 6)
    by_reason: dict[str, list[str]] = {}
    for rule, reason in _skips(run):
        by_reason.setdefault(reason, []).append(rule)
    for reason, rules in by_reason.items():
        lines += ["", *wrap(style.text(f"{reason}:"), style.width, first="skip  ")]
        lines += join(_by_area(rules), style.width, first=" " * 6, by=", ")
    return lines


def _by_area(rules: list[str]) -> list[str]:
    """The rules, with `area/*` for an area that is there as a whole."""
    whole = [area for area in AREAS if all(r.id in rules for r in RULES if r.area == area)]
    names = [f"{area}/*" for area in whole]
    return names + [rule for rule in rules if rule.partition("/")[0] not in whole]


def _skips(run: Run) -> list[tuple[str, str]]:
    return [
        (rule, run.why_skipped(rule))
        for rule, outcome in run.report.rules.items()
        if outcome is Outcome.SKIP
    ]


def _conclusion(run: Run, source: str = "") -> list[str]:
    """The verdict, of what if that is to be named, and on how much it rests."""
    counts = run.counts
    counts[Outcome.SKIP] = 0
    verdict = [run.report.verdict.upper(), *([source] if source else [])]
    looked_at = f"{run.looked_at} of {len(run.report.rules)} rules looked at"
    excused = sum(run.excuse(rule) is not None for rule in run.report.rules)
    known = [f"{excused} of that known"] if excused else []
    stale = [f"{number(len(run.outdated), 'known failure')} outdated"] if run.outdated else []
    return [*verdict, *_counted(counts), *known, *stale, looked_at]


def _reasons(run: Run, style: Style, *, everything: bool) -> list[str]:
    reasons = open_reasons(run)
    shown = reasons if everything else reasons[:_REASONS]
    lines: list[str] = []
    for reason in shown:
        lines += wrap(style.text(reason), style.width, first=_INDENT, rest=_INDENT * 2)
    if len(shown) < len(reasons):
        lines.append(f"{_INDENT}and {len(reasons) - len(shown)} more: -v shows them")
    return lines


def _commands(run: Run, style: Style) -> list[str]:
    """Commands to paste: never broken, so that they still work; what they give beside or below."""
    commands = list(run.commands)
    for outcome in _BLOCKS:
        first = next((rule.id for rule in RULES if run.report.rules[rule.id] is outcome), None)
        if first is not None:
            gives = "the rule, with good and bad bytes"
            commands.insert(0, (f"cheapgpu explain {first}", gives))
            break
    safe = [(style.text(command), gives) for command, gives in commands]
    widest = max((columns(command) for command, _ in safe), default=0)
    beside = all(widest + len(gives) + 6 <= style.width for _, gives in safe)
    lines: list[str] = []
    for command, gives in safe:
        if beside:
            lines.append(f"{_INDENT}{command}{' ' * (widest - columns(command) + 4)}{gives}")
        else:
            lines += [f"{_INDENT}{command}", *wrap(gives, style.width, first=_INDENT * 3)]
    return lines
