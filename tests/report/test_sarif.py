"""SARIF 2.1.0: the structure that code scanning reads, and places that lead to the bytes."""

import json
from dataclasses import replace
from typing import Any

from cheapgpu.core.rules import BY_ID, RULES
from cheapgpu.report.run import Run
from cheapgpu.report.sarif import sarif
from tests.report.known_runs import EXPIRED, KNOWN, PASSING, advised_run, known_run
from tests.report.runs import all_runs, bare, everything_wrong, nothing_established, run_of
from tests.report.test_terminal import HOSTILE, hostile_runs


def log_of(*runs: Run, docs: str = "") -> list[dict[str, Any]]:
    """The runs of the log."""
    log = json.loads(sarif(runs, docs))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("/sarif-2.1.0.json")
    found: list[dict[str, Any]] = log["runs"]
    return found


def test_every_rule_is_described() -> None:
    """Its sentence, why it matters, its level, and how to learn more."""
    (run,) = log_of(known_run())
    described = run["tool"]["driver"]["rules"]
    assert [one["id"] for one in described] == [rule.id for rule in RULES]
    one = described[[rule.id for rule in RULES].index("stream/usage-once")]
    rule = BY_ID["stream/usage-once"]
    assert one["shortDescription"]["text"] == rule.sentence
    assert rule.why in one["help"]["text"]
    assert rule.citation in one["help"]["text"]
    assert one["defaultConfiguration"] == {"level": "error"}
    assert "helpUri" not in one


def test_rules_lead_to_their_heading_where_the_docs_have_an_address() -> None:
    """The anchor is made as the page makes it: the id without its slash."""
    (run,) = log_of(known_run(), docs="https://docs.example/rules.html")
    addresses = {one["id"]: one["helpUri"] for one in run["tool"]["driver"]["rules"]}
    assert addresses["stream/usage-once"] == "https://docs.example/rules.html#streamusage-once"


def test_a_result_points_to_the_bytes_of_the_body() -> None:
    """In bytes from the body's begin, and in the same lines and columns."""
    source = known_run()
    (run,) = log_of(source)
    (result,) = run["results"]
    assert (result["ruleId"], result["kind"], result["level"]) == (
        "stream/usage-alone",
        "fail",
        "error",
    )
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    place = result["locations"][0]["physicalLocation"]
    artifact = run["artifacts"][place["artifactLocation"]["index"]]
    assert place["artifactLocation"]["uri"] == artifact["location"]["uri"] == "/stream-short"
    assert run["artifacts"][artifact["parentIndex"]]["location"]["uri"] == "run.jsonl"
    body = source.exchanges[0].body
    assert artifact["length"] == len(body)
    region = place["region"]
    at = region["byteOffset"]
    there = body[at : at + region["byteLength"]]
    assert there.startswith(b'{"prompt_tokens"')
    line = body.decode().split("\n")[region["startLine"] - 1]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == there.decode()
    assert region["endLine"] == region["startLine"]


def test_places_in_bodies_that_are_no_text_are_bytes_alone() -> None:
    """Columns of broken UTF-8 cannot be counted, and are not guessed."""
    (run,) = log_of(run_of(bare(b'data: {"a":"\xff"}\n\n')))
    regions = [
        location["physicalLocation"]["region"]
        for result in run["results"]
        for location in result["locations"]
        if result["ruleId"] == "stream/utf8"
    ]
    assert regions
    assert all(set(region) == {"byteOffset", "byteLength"} for region in regions)


def test_columns_count_characters() -> None:
    """A character of several bytes is one column, as `columnKind` says."""
    (run,) = log_of(run_of(bare('data: {"é🌧":1,}\n\n'.encode())))
    assert run["columnKind"] == "unicodeCodePoints"
    for result in run["results"]:
        region = result["locations"][0]["physicalLocation"].get("region", {})
        if result["ruleId"] == "stream/json":
            assert region["startColumn"] <= region["byteOffset"] + 1 - 4


def test_one_alert_for_each_rule_and_case() -> None:
    """The fingerprint is of both, and no two results share one."""
    for _, source in all_runs():
        (run,) = log_of(source)
        prints = [json.dumps(one["partialFingerprints"]) for one in run["results"]]
        assert len(prints) == len(set(prints))
    (run,) = log_of(known_run())
    assert run["results"][0]["partialFingerprints"] == {
        "ruleAndCase/v1": "stream/usage-alone:stream-short"
    }


def test_further_places_are_related() -> None:
    """A rule that breaks in many events is one result, with all the places that were kept."""
    events = b'data: {"id":1}\n\n' * 3
    (run,) = log_of(run_of(bare(events)))
    result = next(one for one in run["results"] if one["ruleId"] == "stream/chunk-schema")
    assert result["occurrenceCount"] >= 3
    assert result["relatedLocations"]


def test_what_could_not_be_told_is_open() -> None:
    """Kind open has level none; advice is a warning, or an error where it is strict."""
    (run,) = log_of(nothing_established())
    silent = "stream/heartbeat-while-silent"  # a minute without a comment is advice
    found = {(one["kind"], one["level"]) for one in run["results"] if one["ruleId"] != silent}
    assert found == {("open", "none")}
    (run,) = log_of(advised_run())
    assert [(one["kind"], one["level"]) for one in run["results"]] == [("fail", "warning")]
    (run,) = log_of(advised_run(strict=True))
    assert [(one["kind"], one["level"]) for one in run["results"]] == [("fail", "error")]


def test_known_failures_are_suppressed_not_hidden() -> None:
    """With the reason; outdated ones are results of their own."""
    (run,) = log_of(known_run(KNOWN))
    (result,) = run["results"]
    assert result["suppressions"] == [
        {
            "kind": "external",
            "status": "accepted",
            "justification": "mended in the next release (until 2026-12-01)",
        }
    ]
    for entry in (PASSING, EXPIRED):
        (run,) = log_of(known_run(entry))
        *_, result = run["results"]
        assert result["ruleId"] == entry.id
        assert "known failure" in result["message"]["text"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["index"] == 0
        assert not any("suppressions" in one for one in run["results"])


def test_a_case_that_is_repeated_has_bodies_of_its_own() -> None:
    """Two exchanges of one case are two artifacts, and one result of a rule."""
    (exchange,) = known_run().exchanges
    (run,) = log_of(run_of(exchange, exchange))
    assert [one["location"]["uri"] for one in run["artifacts"]] == [
        "run.jsonl",
        "/stream-short",
        "/stream-short/2",
    ]
    results = [one for one in run["results"] if one["ruleId"] == "stream/usage-alone"]
    assert len(results) == 1
    related = results[0]["relatedLocations"][0]["physicalLocation"]["artifactLocation"]
    assert related == {"uri": "/stream-short/2", "index": 2}


def test_several_runs_are_several_runs() -> None:
    """Told apart by what was asked."""
    other = replace(known_run(), target="https://gpu8.example/v1")
    ids = [run["automationDetails"]["id"] for run in log_of(known_run(), other)]
    assert len(set(ids)) == 2


def test_every_region_lies_in_its_body_and_all_is_safe() -> None:
    """Whatever was sent: the log is ASCII, and no place is outside."""
    runs = [everything_wrong(), *hostile_runs(), *(run for _, run in all_runs())]
    for source in runs:
        text = sarif([source])
        assert text.isascii()
        assert HOSTILE not in text
        (run,) = log_of(source)
        for result in run["results"]:
            for location in [*result["locations"], *result.get("relatedLocations", [])]:
                place = location["physicalLocation"]
                artifact = run["artifacts"][place["artifactLocation"]["index"]]
                assert artifact["location"]["uri"] == place["artifactLocation"]["uri"]
                assert artifact["location"]["uri"].isprintable()
                if region := place.get("region"):
                    assert region["byteOffset"] + region["byteLength"] <= artifact["length"]
