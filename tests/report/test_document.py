"""The JSON document: its shape, its order, and that it is safe to print."""

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from cheapgpu.core.rules import RULES
from cheapgpu.report.document import document, to_json
from tests.report.known_runs import EXPIRED, KNOWN, PASSING, UNSEEN, known_run
from tests.report.runs import all_runs, bare, everything_wrong, example, recorded, run_of
from tests.report.test_terminal import hostile_runs

SCHEMA = files("cheapgpu.report").joinpath("report.schema.json")


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


def test_every_document_matches_its_schema() -> None:
    """Two validators accept all that is ever printed, whatever was sent."""
    schema = json.loads(SCHEMA.read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    ours = jsonschema_rs.validator_for(schema)
    oracle = jsonschema.Draft202012Validator(schema)
    runs = [run for _, run in all_runs()] + hostile_runs()
    runs += [known_run(KNOWN, PASSING, UNSEEN), known_run(EXPIRED, strict=True), run_of()]
    for run in runs:
        found = json.loads(to_json(document(run)))
        assert ours.is_valid(found)
        oracle.validate(found)


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "fine"},
        {"target": 1},
        {"another": 1},
        {"counts": {}},
        {"known": [{"id": "stream/json"}]},
        {"rules": [{"id": "x/y", "level": "MUST", "outcome": "skip", "findings": []}]},
        {"rules": [{"id": "x/y", "level": "MAY", "outcome": "pass", "findings": []}]},
        {"exchanges": [{"case": "x"}]},
    ],
)
def test_the_schema_refuses_what_is_not_a_report(change: dict[str, Any]) -> None:
    """It is as strict as its words: a wrong value, a missing or a further member."""
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_bytes()))
    found = document(known_run())
    assert validator.is_valid(found)
    assert not validator.is_valid(found | change)


def test_the_document_says_what_decides() -> None:
    """The verdict is what was proven, the standing what ends the command, and why they differ."""
    found = document(replace(known_run(KNOWN, UNSEEN), started="2026-11-30T12:00:00Z"))
    assert (found["verdict"], found["standing"]) == ("does not conform", "conforms")
    assert found["known"][0] == {
        "id": "stream/usage-alone",
        "because": "mended in the next release",
        "until": "2026-12-01",
        "state": "known",
    }
    assert found["known"][1]["state"] == "not seen"
    assert found["model"] == "example-local-model"
    assert found["started"] == "2026-11-30T12:00:00Z"
    assert sum(found["counts"].values()) == len(RULES)
    assert found["counts"]["fail"] == 1
