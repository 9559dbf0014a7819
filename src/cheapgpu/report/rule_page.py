"""The rules as a terminal shows them: the list, and one rule explained with its examples."""

import itertools
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from cheapgpu.core.examples import STREAM_REQUEST, Example
from cheapgpu.core.findings import Outcome
from cheapgpu.core.rules import AREAS, Rule
from cheapgpu.report.block import findings_of, rule_title, seconds
from cheapgpu.report.excerpt import visible
from cheapgpu.report.run import Run
from cheapgpu.report.style import Style, columns, wrap

#: Below this width a rule's sentence stands under its id instead of beside it.
_BESIDE: Final = 76
_ID: Final = 30
_LEVEL: Final = 7
#: An example keeps this many lines at its beginning and as many at its end.
_KEPT: Final = 24
_SENT: Final = {
    "wrong": "with a wrong key",
    "none": "without a key",
    "unknown": "for a model that the endpoint does not have",
}


def rule_list(rules: Sequence[Rule], style: Style) -> str:
    """Return the rules by area and citation, each with its level and its sentence."""
    lines: list[str] = []
    for area, about in AREAS.items():
        own = [rule for rule in rules if rule.area == area]
        if not own:
            continue
        lines += [f"{area}: {about}", ""]
        for citation, cited in itertools.groupby(own, lambda rule: rule.citation):
            lines += wrap(style.text(citation), style.width, first="  ")
            for rule in cited:
                lines += _entry(rule, style)
            lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _entry(rule: Rule, style: Style) -> list[str]:
    sentence = style.text(rule.sentence)
    if style.width >= _BESIDE:
        first = f"    {rule.id:<{_ID}} {rule.level:<{_LEVEL}}"
        return wrap(sentence, style.width, first=first)
    title = rule_title(rule, [rule.level], style, glyph="  ")
    return [*title, *wrap(sentence, style.width, first=" " * 4)]


def rule_page(rule: Rule, broken: Run, style: Style) -> str:
    """Return one rule explained; `broken` is what was judged of its bad example."""
    lines = rule_title(rule, [rule.level], style)
    lines += wrap(style.text(rule.sentence), style.width)
    lines.append("")
    for name, value in (
        ("why", rule.why),
        ("says", rule.citation),
        ("judged by", f"cheapgpu.core.{rule.judge}"),
    ):
        lines += wrap(style.text(value), style.width, first=f"{name:<9}  ")
    if rule.request != STREAM_REQUEST or _circumstances(rule):
        lines += ["", *wrap(f"request{_circumstances(rule)}", style.width)]
        lines += _lines(rule.request, style) or ["  (no body)"]
    if rule.before is not None:
        left = ", and was left by its client there" if rule.before.how == "left" else ""
        lines += ["", *wrap("before it, another request", style.width)]
        lines += _lines(rule.before.request, style)
        lines += ["", *wrap(f"was answered{left}", style.width)]
        lines += _example(rule.before.answer, style)
    good = {line for _, data in rule.good for line in data.splitlines()}
    lines += ["", "good", *_example(rule.good, style)]
    lines += ["", *wrap("bad, with > before what is not in the good one", style.width)]
    lines += _example(rule.bad, style, good)
    outcome = broken.report.rules[rule.id]
    if outcome is not Outcome.SKIP:
        lines += ["", "what breaks" if outcome is Outcome.FAIL else "what is amiss"]
        lines += findings_of(broken, rule, style)
    return "\n".join(lines) + "\n"


def _circumstances(rule: Rule) -> str:
    """What the sender of a rule's request knew, and how it declared the body, where unusual."""
    known = [_SENT[value] for value in (rule.credential, rule.model) if value in _SENT]
    if rule.content_type != "application/json":
        known.append(f"declared {rule.content_type}")
    return f" {', '.join(known)}" if known else ""


def _example(example: Example, style: Style, known: AbstractSet[bytes] | None = None) -> list[str]:
    """An example read by read; lines that are not `known` are marked."""
    lines: list[str] = [] if example else ["  no answer"]
    for t, data in example:
        if len(example) > 1:
            lines.append(f"  {seconds(t)}{'' if data else '  end of the body'}")
        lines += _lines(data, style, known)
    if len(lines) <= 2 * _KEPT:
        return lines
    left_out = f"  {style.ellipsis} {len(lines) - 2 * _KEPT} lines left out {style.ellipsis}"
    return [*lines[:_KEPT], left_out, *lines[-_KEPT:]]


def _lines(data: bytes, style: Style, known: AbstractSet[bytes] | None = None) -> list[str]:
    """Bytes line by line, each broken where the terminal ends; no blank lines at the end."""
    lines: list[str] = []
    for line in data.splitlines():
        mark = "  " if known is None or line in known else style.paint(">", "red") + " "
        first, *rest = _broken(visible(line, style), style.width - 4)
        lines += [(mark + first).rstrip(), *(f"    {part}" for part in rest)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _broken(text: str, room: int) -> list[str]:
    """Break text into pieces of at most `room` columns, behind a comma near the end if any."""
    pieces: list[str] = []
    while columns(text) > room:
        cut = room
        while columns(text[:cut]) > room:
            cut -= 1
        comma = text.rfind(",", cut * 2 // 3, cut) + 1
        pieces.append(text[: comma or cut])
        text = text[comma or cut :]
    return [*pieces, text]
