"""The gallery: each wrong endpoint breaks what it says and nothing else, the right one nothing."""

import asyncio
import json
import re
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import pytest

from cheapgpu.check import cases
from cheapgpu.check.limits import Limits
from cheapgpu.check.plan import Plan
from cheapgpu.check.run import run
from cheapgpu.core import examples
from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import ExchangeOutcome, Outcome
from cheapgpu.core.rules import BY_ID, RULES
from cheapgpu.core.verify import Report, judge, verify
from cheapgpu.simulate.endpoint import Endpoint
from cheapgpu.simulate.faults import BY_NAME, FAULTS, Fault, chosen
from cheapgpu.simulate.gallery.timing import BROKEN_OFF
from cheapgpu.simulate.server import serving
from cheapgpu.wire.target import parse_target
from tests.simulate.asking import (
    PATIENT,
    QUICK,
    RIGHT,
    STREAM,
    WHOLE,
    Put,
    asked,
    on_paper,
    questions_of,
)

#: Rules that no endpoint of the gallery breaks, with the reason.
EXCEPTIONS: dict[str, str] = {}

#: Faults whose waits are too long to be waited for: they are judged by the times that they state.
ON_PAPER = ("stream/heartbeat-while-silent", "scenario/Q191")

#: Seconds for each token where times are judged: the long answer then takes a third of a second.
PACE = 0.002
#: Seconds for each token where a wait is compared: an answer of 32 tokens then takes 0.8 s.
SLOW_PACE = 0.025
#: A question whose answer is long enough to be timed, in both ways.
LONG = tuple(
    Put(
        case="stream-long" if stream else "whole-long",
        body=examples.request(
            messages=[{"role": "user", "content": "Tell a long story of rain. " * 4}],
            max_completion_tokens=160,
            stream=stream,
            stream_options={"include_usage": True} if stream else ...,
        ),
    )
    for stream in (True, False)
)
#: What every endpoint is asked beside the questions of its own rule.
EVERYDAY = [
    STREAM,
    WHOLE,
    *questions_of("auth/missing-refused"),
    *questions_of("auth/wrong-refused"),
    *questions_of("refuse/temperature"),
    *questions_of("refuse/unknown-model"),
    *questions_of("accepted/integers"),
    *questions_of("accepted/unicode"),
    *questions_of("accepted/roles"),
    *questions_of("honesty/prompt-tokens-grow"),
    *questions_of("honesty/limit-respected"),
]


def is_timed(fault: Fault) -> bool:
    """Whether a fault is about when text comes."""
    timed = "stream/incremental" in (*fault.breaks, *fault.opens)
    return timed or fault.name == "timing/slow-prompt"


def limits_for(fault: Fault) -> Limits:
    """What its questions may take: time, where times are judged."""
    return PATIENT if is_timed(fault) or "works-on" in fault.habits else QUICK


def endpoint_of(*faults: Fault) -> Endpoint:
    """An endpoint with faults, in a hurry where times do not matter."""
    slow = any(is_timed(fault) or "slot-kept" in fault.habits for fault in faults)
    pace = PACE if slow else 0.0
    pace = SLOW_PACE if any("works-on" in fault.habits for fault in faults) else pace
    return replace(RIGHT, faults=faults, pace=pace)


def questions_for(fault: Fault) -> list[Put]:
    """What shows a fault, and that it is the only one."""
    hangs = fault.opens or fault.name.startswith("timing/")
    if hangs and not fault.breaks and not is_timed(fault):
        # Each question is waited for, if not in vain.
        return [STREAM, WHOLE, *questions_of("auth/missing-refused")]
    own = [put for rule in fault.breaks for put in questions_of(rule)]
    if "works-on" in fault.habits:
        # A short question before the client that leaves, and after it.
        leaving, after = own
        after = replace(after, body=after.body.replace(b'tokens":32', b'tokens":4'))
        return [after, leaving, after]
    if fault.name == "scenario/Q200":
        streamed = b'"stream":true,"stream_options":{"include_usage":true}'
        own += [replace(put, body=put.body.replace(streamed, b'"stream":false')) for put in own]
    return [*(LONG if is_timed(fault) else ()), *EVERYDAY, *own]


def words(text: str) -> int:
    """Count as the scripted model does."""
    return len(text.split())


def looked_at(exchanges: tuple[Exchange, ...], fault: Fault | None = None) -> Report:
    """Judge; the tokenizer is at hand only where a fault is about it."""
    counted = fault is None or "honesty/tokens-as-counted" in fault.breaks
    return verify(exchanges, count_tokens=words if counted else None)


def of(report: Report, *outcomes: Outcome) -> set[str]:
    """The rules that came to one of these outcomes."""
    return {rule for rule, outcome in report.rules.items() if outcome in outcomes}


@pytest.mark.parametrize(
    "fault", [f for f in FAULTS if f.name not in ON_PAPER], ids=lambda fault: fault.name
)
def test_wrong_endpoint_breaks_what_it_says_and_nothing_else(fault: Fault) -> None:
    """What is broken or advised is what the fault declares, and so is what stays undecided."""
    report = looked_at(asked(endpoint_of(fault), questions_for(fault), limits_for(fault)), fault)
    assert of(report, Outcome.FAIL, Outcome.ADVICE) == set(fault.breaks)
    undecided = of(report, Outcome.UNKNOWN, Outcome.ERROR)
    assert {r for r in undecided if not any(fnmatchcase(r, g) for g in fault.opens)} == set()
    assert [g for g in fault.opens if not any(fnmatchcase(r, g) for r in undecided)] == []
    assert of(report, Outcome.PASS) or "*" in fault.opens


@pytest.mark.parametrize("name", ON_PAPER)
def test_slow_faults_break_what_they_say_by_the_times_that_they_state(name: str) -> None:
    """Judged without waiting, nothing but the declared rules is broken."""
    fault = BY_NAME[name]
    report = looked_at(tuple(on_paper(endpoint_of(fault), put) for put in (STREAM, WHOLE)), fault)
    assert of(report, Outcome.FAIL, Outcome.ADVICE) == set(fault.breaks)
    assert of(report, Outcome.UNKNOWN, Outcome.ERROR) == set()


def test_right_endpoint_breaks_nothing() -> None:
    """The questions of every rule get their right answer, and every rule is looked at."""
    every = [put for rule in RULES for put in questions_of(rule.id)]
    report = looked_at((*asked(replace(RIGHT, pace=PACE), LONG, PATIENT), *asked(RIGHT, every)))
    assert of(report, Outcome.FAIL, Outcome.ADVICE, Outcome.UNKNOWN, Outcome.ERROR) == set()
    assert report.verdict == "conforms"
    # No error comes within its streams.
    assert of(report, Outcome.SKIP) == {"stream/error-schema", "stream/error-is-final"}


def test_check_finds_the_right_endpoint_conforming() -> None:
    """A whole run of `cheapgpu check` gives the verdict."""

    async def checked() -> Report:
        async with serving(replace(RIGHT, pace=PACE)) as url:
            target = parse_target(url)
            plan = Plan(target=target, model=RIGHT.model, key=RIGHT.key, long_seconds=0.3)
            return await run(plan)

    report = asyncio.run(checked())
    assert report.verdict == "conforms"
    assert of(report, Outcome.ADVICE) == set()


@pytest.mark.parametrize("names", [("stream/usage-once", "refuse/tools"), ("whole/schema",)])
def test_check_finds_what_is_wrong(names: tuple[str, ...]) -> None:
    """So it does of wrong ones: the rules of the faults fail, and no other."""
    kept = ("stream-short", "whole-short", "with-tools")
    few = tuple(case for case in cases.CASES if case.name in kept)

    async def checked() -> Report:
        async with serving(replace(RIGHT, faults=chosen(names))) as url:
            plan = Plan(target=parse_target(url), model=RIGHT.model, key=RIGHT.key, cases=few)
            return await run(plan)

    report = asyncio.run(checked())
    assert of(report, Outcome.FAIL, Outcome.ADVICE) == set(names)


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_check_accuses_a_wrong_endpoint_of_nothing_else(fault: Fault) -> None:
    """A whole run of `cheapgpu check` breaks none but the declared rules, whatever it asks."""

    async def checked() -> Report:
        async with serving(endpoint_of(fault)) as url:
            plan = Plan(
                target=parse_target(url),
                model=RIGHT.model,
                key=RIGHT.key,
                limits=limits_for(fault),
                long_seconds=0.0,
            )
            return await run(plan)

    report = asyncio.run(checked())
    assert of(report, Outcome.FAIL, Outcome.ADVICE) <= set(fault.breaks)


def test_every_rule_has_its_wrong_endpoint() -> None:
    """A rule without an entry of its name is an exception with a reason."""
    missing = {rule.id for rule in RULES} - BY_NAME.keys()
    assert missing == EXCEPTIONS.keys()
    assert all(EXCEPTIONS.values())


def test_page_of_the_gallery_is_current() -> None:
    """The page has the row of every fault that no rule names."""
    page = Path("docs/simulate.md").read_text(encoding="utf-8")
    for fault in FAULTS:
        if fault.name not in BY_ID:
            breaks, opens = (
                ", ".join(f"`{name}`" for name in names) or "nothing"
                for names in (fault.breaks, fault.opens)
            )
            assert f"| `{fault.name}` | {fault.sentence} | {breaks} | {opens} |" in page


def test_entries_are_named_once_and_say_what_they_break() -> None:
    """Names are unique; what is declared are rules; an entry named by a rule breaks that first."""
    assert len(BY_NAME) == len(FAULTS)
    for fault in FAULTS:
        assert set(fault.breaks) <= BY_ID.keys()
        assert fault.sentence.endswith(".")
        if fault.name in BY_ID:
            assert fault.breaks[0] == fault.name


def test_faults_add_up() -> None:
    """Faults of several stages are all there, and so are two of one stage."""
    faults = chosen(["stream/usage-once", "stream/id-constant", "error/schema", "whole/status"])
    report = looked_at(asked(endpoint_of(*faults), EVERYDAY), faults[0])
    assert of(report, Outcome.FAIL, Outcome.ADVICE) == {fault.name for fault in faults}


# --- scenarios ------------------------------------------------------------------------------------

SCENARIOS: Final = json.loads(
    Path("tests/data/corpus/quirks/scenarios.json").read_text(encoding="utf-8")
)
#: What a gateway or a ledger does, which no endpoint can show.
NOT_OF_AN_ENDPOINT = {
    "Q132": "what a relay books stands in its own log",
    "Q192": "it is the buyer who leaves",
    "Q195": "what is booked for usage that was rightly reported",
    "Q198": "what a gateway's receipt holds",
    "Q207": "what a gateway's receipt holds",
}
#: What the streamed and the plain answer of a scenario prove, where it is not `complete` for both.
OUTCOMES: dict[str, tuple[ExchangeOutcome, ExchangeOutcome]] = {
    "Q033": ("unknown", "complete"),
    "Q053": ("unknown", "unknown"),
    "Q103": ("unknown", "complete"),
    "Q156": ("refused", "refused"),
    "Q171": ("failed", "failed"),
    "Q172": ("refused", "complete"),
    "Q184": ("failed", "complete"),
    "Q190": ("unknown", "unknown"),
    "Q194": ("failed", "complete"),
    "Q208": ("failed", "complete"),
    "Q209": ("failed", "complete"),
}


def test_every_scenario_of_an_endpoint_is_there() -> None:
    """The corpus is divided between the gallery and what no endpoint can show."""
    there = {name.partition("/")[2] for name in BY_NAME if name.startswith("scenario/")}
    assert there | NOT_OF_AN_ENDPOINT.keys() == {scenario["id"] for scenario in SCENARIOS}
    assert not there & NOT_OF_AN_ENDPOINT.keys()


@pytest.mark.parametrize(
    "name", [name for name in BY_NAME if name.startswith("scenario/") and name not in ON_PAPER]
)
def test_scenario_proves_what_it_must(name: str) -> None:
    """A stream and a plain answer have the outcome that the report's expectation calls for."""
    fault = BY_NAME[name]
    made = asked(endpoint_of(fault), [STREAM, WHOLE], limits_for(fault))
    expected = OUTCOMES.get(name.partition("/")[2], ("complete", "complete"))
    assert tuple(judge(exchange).outcome for exchange in made) == expected


def test_wait_for_a_client_that_left_is_shown() -> None:
    """The advice names how long the answer took, and how long it takes otherwise (Q188)."""
    fault = BY_NAME["scenario/Q188"]
    report = looked_at(asked(endpoint_of(fault), questions_for(fault), PATIENT), fault)
    (finding,) = [f for f in report.judgements[-1].findings if f.rule == fault.breaks[0]]
    assert re.fullmatch(
        r"an answer, whole after \d\.\d{3} s; the same question took \d\.\d{3} s in .+",
        finding.observed,
    )


def test_times_of_a_compressed_stream_are_shown() -> None:
    """The finding says when the bytes came that nobody could read as events (Q184)."""
    (made,) = asked(endpoint_of(BY_NAME["scenario/Q184"]), [STREAM])
    (finding,) = [f for f in judge(made).findings if f.rule == "stream/content-encoding"]
    assert re.fullmatch(r"gzip; \d+ bytes, from \d\.\d{3} s to \d\.\d{3} s", finding.observed)


def test_usage_of_an_answer_without_an_end_is_kept_as_seen() -> None:
    """What was reported stays to be seen, though the outcome is unknown (Q103)."""
    (made,) = asked(endpoint_of(BY_NAME["scenario/Q103"]), [STREAM])
    judgement = judge(made)
    assert judgement.usage is not None
    assert judgement.usage.completion_tokens == 32
    assert judgement.finish_reason is None


def test_failure_in_a_stream_has_no_usage() -> None:
    """An error that comes instead of an end brings no count with it (Q194)."""
    (made,) = asked(endpoint_of(BY_NAME["scenario/Q194"]), [STREAM])
    judgement = judge(made)
    assert (judgement.usage, judgement.finish_reason, judgement.broken) == (None, None, [])


def test_model_list_is_no_test_of_a_key() -> None:
    """With the list open to all, inference is still refused to a wrong key (Q180)."""
    report = looked_at(asked(endpoint_of(BY_NAME["scenario/Q180"]), EVERYDAY))
    assert report.rules["auth/wrong-refused"] is Outcome.PASS
    assert report.rules["auth/missing-refused"] is Outcome.PASS


# --- time and transport ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("timing/cut-by-reset", "reset"),
        ("timing/cut-by-eof", "eof"),
        ("timing/cut-before-done", "eof"),
        ("timing/cut-after-done", "reset"),
        ("timing/stall", "timeout"),
        ("timing/no-answer", "timeout"),
        ("timing/slow-head", "timeout"),
        ("timing/byte-at-a-time", "chunked-end"),
        ("transport/bad-chunk-framing", "reset"),
        ("transport/wrong-content-length", "eof"),
        ("transport/short-content-length", "length"),
        ("transport/huge-head", "cancelled"),
        ("transport/http-1.0-close", "eof"),
        ("transport/1xx-first", "chunked-end"),
        ("transport/trailers", "chunked-end"),
        ("stream/closes-after-done", "closed-after-done"),
        ("scenario/Q033", "timeout"),
    ],
)
def test_stream_ends_as_the_fault_says(name: str, how: str) -> None:
    """The checker sees the end that was meant, not another one."""
    (made,) = asked(endpoint_of(BY_NAME[name]), [STREAM])
    assert made.closed.how == how


def test_what_is_left_of_a_broken_answer_is_half_of_it() -> None:
    """A cut is in the middle: some text has come, and not all."""
    right, broken = (
        asked(endpoint_of(*faults), [STREAM])[0].body
        for faults in ((), (BY_NAME["timing/cut-by-eof"],))
    )
    assert right.startswith(broken)
    assert 0.4 < len(broken) / len(right) < 0.6
    assert len(BROKEN_OFF) == 5


def test_byte_at_a_time_comes_in_many_reads() -> None:
    """The bytes are the same, in more reads than a stream has events."""
    (right,) = asked(RIGHT, [STREAM])
    (crumbs,) = asked(replace(RIGHT, faults=chosen(["timing/byte-at-a-time"])), [STREAM])
    assert crumbs.body == right.body
    assert len(crumbs.reads) > right.body.count(b"\n\n")


def test_held_back_stream_comes_after_its_time() -> None:
    """On paper: all of the text arrives at the moment at which the last of it was made."""
    endpoint = replace(RIGHT, pace=0.5, faults=chosen(["stream/incremental"]))
    made = on_paper(endpoint, STREAM)
    assert {read.t for read in made.reads} == {16.0}
