"""`cheapgpu rules` and `cheapgpu explain`: what is judged, and why."""

import base64
from typing import Annotated, Any

import typer

from cheapgpu.cli import options
from cheapgpu.cli.exit_codes import CONFORMS
from cheapgpu.cli.options import OptionError
from cheapgpu.cli.output import say
from cheapgpu.core.examples import Example
from cheapgpu.core.rules import BY_ID, RULES, Rule, select
from cheapgpu.core.staging import staged
from cheapgpu.core.verify import verify
from cheapgpu.report.document import document, to_json
from cheapgpu.report.rule_page import rule_list, rule_page
from cheapgpu.report.run import Run


def rules(
    globs: Annotated[
        list[str] | None,
        typer.Argument(metavar="GLOB", hidden=True),
    ] = None,
    *,
    json: options.Json = False,
    ascii: options.Ascii = False,  # noqa: A002 -- the option's name
) -> int:
    """List the rules.

    Each with its level, what it asks, and where that is written. GLOB is an id or a pattern of ids,
    such as stream/*; without any, all are listed.
    """
    chosen = select(globs) if globs else list(RULES)
    if json:
        say(to_json([_summary(rule) for rule in chosen]))
    else:
        say(rule_list(chosen, options.style_of("never", ascii_only=ascii)))
    return CONFORMS


def explain(
    rule_id: Annotated[str, typer.Argument(metavar="ID", hidden=True)],
    *,
    json: options.Json = False,
    color: options.ColourOption = "auto",
    ascii: options.Ascii = False,  # noqa: A002 -- the option's name
) -> int:
    """Explain one rule, with good and bad bytes.

    ID is the id of a rule, such as stream/usage-alone. The bad bytes are judged on the spot: what
    is shown of them is what a report would say.
    """
    rule = BY_ID.get(rule_id) or _only_one(rule_id)
    if json:
        say(to_json(_page(rule)))
    else:
        style = options.style_of(color, ascii_only=ascii)
        say(rule_page(rule, judged_example(rule, rule.bad), style))
    return CONFORMS


def judged_example(rule: Rule, example: Example) -> Run:
    """Judge an example as the answer to the request of its rule."""
    exchanges = staged(rule, example)
    # The rule about a tokenizer is explained with one whose tokens are words.
    report = verify(exchanges, count_tokens=lambda text: len(text.split()))
    return Run(report=report, exchanges=exchanges)


def _only_one(pattern: str) -> Rule:
    """The rule that a glob names, if it is one alone."""
    matching = select([pattern])
    if len(matching) > 1:
        raise OptionError(
            f"ID: {pattern!r} names {len(matching)} rules; give one id, such as {matching[0].id}"
        )
    return matching[0]


def _summary(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "level": rule.level,
        "sentence": rule.sentence,
        "why": rule.why,
        "citation": rule.citation,
        "judge": f"cheapgpu.core.{rule.judge}",
    }


def _page(rule: Rule) -> dict[str, Any]:
    broken = document(judged_example(rule, rule.bad))
    return {
        **_summary(rule),
        "request": {
            "content_type": rule.content_type,
            "credential": rule.credential,
            "model": rule.model,
            "body_base64": base64.b64encode(rule.request).decode(),
        },
        "good": _reads(rule.good),
        "bad": _reads(rule.bad),
        "findings": next(one["findings"] for one in broken["rules"] if one["id"] == rule.id),
    }


def _reads(example: Example) -> list[dict[str, Any]]:
    return [{"t": t, "base64": base64.b64encode(data).decode()} for t, data in example]
