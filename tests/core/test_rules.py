"""The registry: every rule once, explained by bytes that the judge itself agrees with."""

import importlib
import re
from dataclasses import replace

import pytest

from cheapgpu.core.errors import SelectionError
from cheapgpu.core.exchange import Closed
from cheapgpu.core.findings import Outcome
from cheapgpu.core.rules import AREAS, BY_ID, RETIRED, RULES, Rule, select
from cheapgpu.core.staging import staged
from cheapgpu.core.verify import verify


def words(text: str) -> int:
    """A tokenizer whose tokens are words."""
    return len(text.split())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_good_bytes_hold_the_rule_and_bad_bytes_break_it_alone(rule: Rule) -> None:
    """Each rule's good example passes it; its bad one breaks it and nothing else."""
    good = verify(staged(rule, rule.good), count_tokens=words).judgements
    assert good[-1].rules[rule.id] is Outcome.PASS
    assert [(one.broken, one.advice) for one in good] == [([], [])] * len(good)
    *before, bad = verify(staged(rule, rule.bad), count_tokens=words).judgements
    assert [(one.broken, one.advice) for one in before] == [([], [])] * len(before)
    if rule.level == "MUST":
        assert (bad.broken, bad.advice) == ([rule.id], [])
        assert bad.outcome != "complete"
    else:
        assert (bad.broken, bad.advice) == ([], [rule.id])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_was_not_seen_is_neither_held_nor_broken(rule: Rule) -> None:
    """Where we stopped, a good answer breaks nothing; where none came, the rule does not hold."""
    *before, last = staged(rule, rule.good)
    stopped = Closed(t=30.0, how="timeout")
    half = replace(last, reads=last.reads[: len(last.reads) // 2], closed=stopped)
    nothing = replace(last, head=None, reads=(), closed=stopped)
    for seen in (half, replace(half, reads=()), nothing):
        *_, judgement = verify([*before, seen], count_tokens=words).judgements
        assert judgement.broken == []
        assert judgement.outcome in ("unknown", "refused")
    *_, unseen = verify([*before, nothing], count_tokens=words).judgements
    assert unseen.rules.get(rule.id) is not Outcome.PASS


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_fit_to_be_shown(rule: Rule) -> None:
    """Slug, sentence, reason and citation are there, and the judge that is named exists."""
    assert re.fullmatch(r"[a-z]+/[a-z0-9_-]+", rule.id)
    assert rule.sentence.endswith(".")
    assert rule.why.endswith(".")
    assert "§" in rule.citation or "our reading" in rule.citation
    module, *names = rule.judge.split(".")
    found = importlib.import_module(f"cheapgpu.core.{module}")
    for name in names:
        found = getattr(found, name)
    assert found is not None


def test_ids_are_unique_and_permanent() -> None:
    """No id occurs twice, none is used again after it was retired, and areas are all known."""
    assert len(BY_ID) == len(RULES)
    assert not set(RETIRED) & set(BY_ID)
    assert set(RETIRED.values()) <= set(BY_ID)
    assert list(dict.fromkeys(rule.area for rule in RULES)) == list(AREAS)


def test_ids_and_globs_select_in_the_registry_s_order() -> None:
    """Patterns choose rules once each; the order is the profile's, not the patterns'."""
    chosen = select(["stream/usage-*", "auth/*", "stream/usage-once"])
    assert [rule.id for rule in chosen][:3] == [rule.id for rule in RULES][:3]
    assert len(chosen) == 3 + sum(rule.id.startswith("stream/usage-") for rule in RULES)


@pytest.mark.parametrize(
    ("pattern", "nearest"),
    [
        ("stream/usage-one", "stream/usage-once"),
        ("usage-alone", "stream/usage-alone"),
        ("usage-aloen", "stream/usage-alone"),
        ("tolls", "refuse/tools"),
        ("zzz/qqq-*", None),
    ],
)
def test_an_unknown_rule_is_refused_with_the_nearest_ones(
    pattern: str, nearest: str | None
) -> None:
    """A typing mistake is answered with what was probably meant."""
    with pytest.raises(SelectionError, match="no rule matches") as caught:
        select([pattern])
    assert (nearest in caught.value.nearest) if nearest else caught.value.nearest == []
    assert caught.value.pattern == pattern
