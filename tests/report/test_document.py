"""The JSON document: its shape, its order, and that it is safe to print."""

import json
from typing import Any

from cheapgpu.core.rules import RULES
from cheapgpu.report.document import document, to_json
from tests.report.runs import bare, everything_wrong, example, recorded, run_of


def rule_of(found: dict[str, Any], rule: str) -> dict[str, Any]:
    """The entry of one rule."""
    entry: dict[str, Any] = next(one for one in found["rules"] if one["id"] == rule)
    return entry


def test_a_document_has_the_members_of_the_design() -> None:
    """A finding has its place; usage is said in tokens in and out; skips have reasons."""
    found = document(run_of(example("stream/done-last", "stream-short")))
    assert found["verdict"] == "does not conform"
    assert found["profile"] == "openai-chat-text-v1-draft.1"
    assert found["target"] == "https://gpu7.example/v1/chat/completions"
    assert found["looked_at"] == {"rules": 28, "of": len(RULES)}
    (exchange,) = found["exchanges"]
    assert exchange["case"] == "stream-short"
    assert exchange["outcome"] == "failed"
    assert exchange["finish_reason"] == "stop"
    assert exchange["usage"] == {"input_tokens": 12, "output_tokens": 3}
    assert exchange["broken"] == ["stream/done-last"]
    assert exchange["advice"] == []
    (finding,) = rule_of(found, "stream/done-last")["findings"]
    assert finding == {
        "case": "stream-short",
        "at": 995,
        "length": 14,
        "event": 7,
        "t": 0.1,
        "expected": "",
        "observed": "[DONE]",
        "follows": None,
        "count": 1,
        "outcome": "fail",
    }
    assert rule_of(found, "stream/json") == {
        "id": "stream/json",
        "level": "MUST",
        "outcome": "pass",
        "findings": [],
    }
    assert rule_of(found, "whole/json")["reason"] == "no exchange called for it"


def test_consequences_are_listed_and_not_counted() -> None:
    """A rule that only follows is skipped, with the reason and the finding."""
    entry = rule_of(document(run_of(example("stream/events-complete"))), "stream/done-present")
    assert entry["outcome"] == "skip"
    assert entry["reason"] == "follows from stream/events-complete"
    assert [one["follows"] for one in entry["findings"]] == ["stream/events-complete"]


def test_rules_are_sorted_and_two_documents_are_equal() -> None:
    """The order is the alphabet's, so that documents of two runs can be compared."""
    found = document(everything_wrong())
    ids = [rule["id"] for rule in found["rules"]]
    assert ids == sorted(rule.id for rule in RULES)
    assert to_json(found) == to_json(document(everything_wrong()))


def test_a_target_that_is_not_known_is_null() -> None:
    """A saved body does not say where it came from."""
    run = run_of(bare(b"data: [DONE]\n\n"))
    assert document(type(run)(report=run.report, exchanges=run.exchanges))["target"] is None


def test_json_is_ascii_without_controls() -> None:
    """No text in a document can act on a terminal."""
    run = recorded("quirks/q009.jsonl")
    hostile = type(run)(report=run.report, exchanges=run.exchanges, target="\x1b[2J\x7f\u202eé")
    text = to_json(document(hostile))
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text)["target"] == "\x1b[2J\x7f\u202eé"
