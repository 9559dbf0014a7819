"""The HTML report: what is on the page, where links lead, what a stranger's bytes cannot do.

The golden file is tests/data/golden-html/small.html. To renew it after a change that is meant, run
`CHEAPGPU_RENEW=1 ./dev test tests/report/test_html.py` and read what changed.
"""

import itertools
import os
import re
from dataclasses import replace
from datetime import date
from functools import cache

import pytest

from cheapgpu import __version__
from cheapgpu.core.exchange import Closed, Exchange, Head, Read, Request
from cheapgpu.core.findings import Outcome
from cheapgpu.core.rules import RULES
from cheapgpu.report.html import html_report
from cheapgpu.report.known import KnownFailure
from cheapgpu.report.page import allowance
from cheapgpu.report.run import Run
from tests.report.pages import Page, page_of
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

GOLDEN = DATA / "golden-html" / "small.html"
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
MEGABYTE = 1 << 20
ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "header", "nav", "main", "footer", "section",
    "h1", "h2", "h3", "h4", "h5", "p", "span", "b", "i", "u", "em", "br", "small", "code", "pre",
    "mark", "a", "ul", "li", "dl", "div", "dt", "dd", "table", "caption", "thead", "tbody", "tr",
    "th", "td", "details", "summary", "figure", "figcaption", "svg", "rect", "path",
}  # fmt: skip
#: Tries to leave its element, its attribute and its file, to hide, and to run backwards.
HOSTILE = (
    "</code></td></table><script>alert(1)</script><img src=x onerror=alert(1)>\"' onclick='x' "
    "<style>*{display:none}</style>&lt;b&gt;{{ 7*7 }}{% raw %}"
    "\u202eevil\u2066\x00\x1b[2J\x9b31m\u200b\u3164\r\n" + "e" + "\u0301" * 40
)


@cache
def engines() -> Run:
    """A run with many exchanges of one endpoint: all that is recorded of an engine."""
    paths = sorted((DATA / "corpus" / "engines" / "xllamacpp").glob("*.jsonl"))
    names = [str(path.relative_to(DATA / "corpus")) for path in paths]
    return run_of(*(exchange for name in names for exchange in recorded(name).exchanges))


@cache
def long_run() -> Run:
    """A run whose every stream is long, and that has more cases than a default one."""
    long = example("stream/incremental", "stream-long", good=True)
    head, *_, end = long.reads
    middle = b"".join(read.data for read in long.reads[1:-1]) * 40
    reads = tuple(
        Read(t=0.01 + n * 1e-4, at=len(head.data) + at, data=middle[at : at + 250])
        for n, at in enumerate(range(0, len(middle), 250))
    )
    body = (head, *reads, replace(end, at=len(head.data) + len(middle), t=9.0))
    stream = replace(long, reads=body, closed=Closed(t=9.1, how="chunked-end"))
    return run_of(*(replace(stream, case=f"stream-long-{n}") for n in range(16)))


def hostile_run() -> Run:
    """An endpoint, a file and a list in which every text is an attack."""
    raw = HOSTILE.encode()
    text = HOSTILE.replace("\\", "").replace('"', "'").replace("\r\n", "")
    plain = "".join(letter for letter in text if letter.isprintable()).encode()
    escaped = b"".join(b"\\u%04x" % ord(letter) for letter in text if ord(letter) < 0xD800)
    chunk = (
        b'data: {"id":"%b","object":"chat.completion.chunk","created":1,"model":"%b","choices":'
        b'[{"index":0,"delta":{"role":"%b","content":"%b","%b":1},"finish_reason":null}],'
        b'"usage":null}\n\n'
    )
    body = b"".join(
        (
            b": " + raw + b"\n\n",
            chunk % (escaped, escaped, plain, escaped, plain),
            chunk % (plain, plain, escaped, plain, escaped),
            b'data: {"error":{"message":"%b","type":"x"}}\n\n' % escaped,
            b"data: " + raw + b"\n\n" + raw,
        )
    )
    request = Request(
        method=HOSTILE, url=HOSTILE, headers=((HOSTILE, HOSTILE),) * 40, body=b'"' + raw
    )
    stream = replace(bare(body, **{HOSTILE: HOSTILE}), case=HOSTILE)
    whole = replace(
        example("error/schema", HOSTILE),
        request=request,
        head=Head(t=0.1, status=400, headers=(("content-type", HOSTILE),)),
        reads=(Read(t=0.1, at=0, data=b'{"error":"' + raw + b'"}'),),
        closed=Closed(t=1.0, how="reset", detail=HOSTILE),
    )
    silent = Exchange(case=HOSTILE, sent=0.0, closed=Closed(t=1.0, how="reset", detail=HOSTILE))
    return replace(
        run_of(stream, whole, silent, replace(example("stream/json"), case=HOSTILE)),
        target=HOSTILE,
        source=HOSTILE,
        about=(HOSTILE,),
        started=HOSTILE,
        profile=HOSTILE,
        commands=((HOSTILE, HOSTILE),),
        known=(KnownFailure(id="stream/json", because=HOSTILE, until=date(2026, 1, 1)),),
    )


def pages() -> list[tuple[str, list[Run]]]:
    """Runs of every kind, alone and side by side."""
    alone = [(name, [run]) for name, run in all_runs()]
    return [
        *alone,
        ("no exchange", [run_of()]),
        ("an engine", [engines()]),
        ("hostile", [hostile_run()]),
        ("hostile, several", [hostile_run(), hostile_run(), everything_wrong()]),
        ("all", [run for _, run in all_runs()]),
        ("long", [long_run()]),
    ]


@cache
def written() -> tuple[tuple[str, str, Page], ...]:
    """Every page: its name, how it is written, and how it is read."""
    texts = [(name, html_report(runs)) for name, runs in pages()]
    return tuple((name, html, page_of(html)) for name, html in texts)


def page(*runs: Run) -> Page:
    """The page of these runs."""
    return page_of(html_report(runs))


def test_the_page_is_as_it_was_agreed() -> None:
    """Rules and answers that differ from the golden file are a change that someone has to want."""
    html = html_report([recorded("quirks/q013.jsonl")])
    # The parts that depend on what was recorded; what holds and the rest change with every rule.
    html = html[html.index('<section id="broken">') : html.index('<section id="passed">')]
    if os.environ.get("CHEAPGPU_RENEW") == "1":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(html, encoding="utf-8")
    assert html == GOLDEN.read_text(encoding="utf-8")


def test_the_same_runs_give_the_same_bytes() -> None:
    """Nothing on the page depends on when or how often it is written."""
    runs = [recorded("engines/xllamacpp/stream_happy.jsonl"), nothing_established()]
    assert html_report(runs) == html_report(runs)


def test_markup_is_whole_and_holds_no_other_element() -> None:
    """Every element is closed, and there is none that could run or fetch anything."""
    for name, _, one in written():
        assert one.finish() == [], name
        assert {element.tag for element in one.elements} <= ELEMENTS, name
        attributes = {key for element in one.elements for key in element.attributes}
        assert not [key for key in attributes if key.startswith("on") or key == "src"], name


def test_every_link_leads_somewhere_and_every_anchor_is_one() -> None:
    """A link of the page has its place on the page; only citations lead away from it."""
    for name, _, one in written():
        anchors = one.anchors
        assert len(anchors) == len(set(anchors)), name
        inside = {link[1:] for link in one.links if link.startswith("#")}
        assert inside <= set(anchors), name
        outside = {link for link in one.links if not link.startswith("#")}
        assert all(re.match(r"https://(html\.spec\.whatwg|www\.rfc-editor|json-schema)\.org/", link)
                   for link in outside), name  # fmt: skip


def test_nothing_is_fetched() -> None:
    """The page has no address of anything that a browser would load by itself."""
    html = html_report([everything_wrong()])
    style = STYLE.findall(html)
    assert len(style) == 1
    assert not re.search(r"url\(|@import|https?:", style[0])
    assert "default-src 'none'" in html


def test_no_letter_of_a_stranger_acts_on_the_page() -> None:
    """Controls, bidi marks and letters without width are codes, and piles of marks are cut."""
    for name, html, _ in written():
        odd = {letter for letter in html if not letter.isprintable()} - {"\n"}
        assert odd == set(), name
        assert "\u3164" not in html, name
        assert "\u0301" * 4 not in html, name


def test_a_strangers_markup_is_text() -> None:
    """What looks like markup or like a template is shown as it was sent."""
    html = html_report([hostile_run()])
    assert "<script" not in html
    assert "<img" not in html
    assert "{{ 7*7 }}" in page_of(html).text
    assert "<U+202E>evil" in page_of(html).text


def test_the_head_says_what_was_proven_of_what() -> None:
    """Verdict, target, model, profile, schema, version, time, settings and counts are there."""
    run = replace(engines(), started="2026-11-30T12:00:00Z", strict=True)
    text = page(run).text
    for phrase in (
        f"✗ {run.report.verdict} {run.target}",
        f"{run.looked_at} of {len(RULES)} rules were looked at, in {len(run.exchanges)} exchanges",
        f"model{run.model}",
        "recorded2026-11-30T12:00:00Z",
        "settingsadvice fails the run; every rule was selected",
        f"profile{run.profile}, schema ",
        f"judged bycheapgpu {__version__}",
        f"✗ {run.counts[Outcome.FAIL]} fail",
        "What the outcomes mean",
    ):
        assert phrase in text, phrase


def test_every_outcome_is_explained() -> None:
    """Six outcomes, each with its sentence."""
    text = page(run_of()).text
    for outcome in Outcome:
        assert f" {outcome.word} " in text


def test_every_rule_that_is_amiss_has_a_section() -> None:
    """What fails, is open or is advice has its sentence, its reason, and both examples."""
    for run in (everything_wrong(), nothing_established()):
        one = page(run)
        for rule in RULES:
            amiss = run.report.rules[rule.id] > Outcome.PASS
            assert (rule.id in one.anchors) == amiss, rule.id
            assert not amiss or " ".join(rule.sentence.split()) in one.text


def test_a_failing_rule_shows_what_was_wanted_seen_and_where() -> None:
    """Expected, observed, and the place with links to the event and to the bytes."""
    run = run_of(example("stream/model-echoed"))
    finding = next(f for f in run.report.judgements[0].findings if f.outcome is Outcome.FAIL)
    one = page(run)
    assert finding.at is not None
    assert {f"#x1e{finding.event}", f"#x1b{finding.at // 16 * 16}"} <= set(one.links)
    assert finding.expected in one.text
    assert finding.observed in one.text


def test_every_place_is_listed() -> None:
    """A rule that breaks in several cases names each of them, with a link."""
    cases = [replace(example("error/schema"), case=f"case-{n}") for n in range(5)]
    one = page(run_of(*cases))
    assert "Every place 5" in one.text
    assert {f"#x{n}" for n in range(1, 6)} <= set(one.links)


def test_consequences_stand_with_their_cause() -> None:
    """A rule that fails only because of another has no section of its own."""
    one = page(run_of(example("stream/events-complete")))
    assert "stream/done-present" not in one.anchors
    assert "stream/done-present follows from this" in one.text


def test_a_stream_has_its_drawing_its_events_and_its_bytes() -> None:
    """Timeline with words for it, a row for each event, and anchors from one to the other."""
    run = recorded("engines/xllamacpp/stream_happy.jsonl")
    one = page(run)
    events = run.report.judgements[0].notes["events"]
    assert [svg["aria-labelledby"] for svg in one.all("svg")] == ["x1t"]
    assert "x1t" in one.anchors
    assert f"{events} events in " in one.text
    assert {f"x1e{n}" for n in range(1, events + 1)} <= set(one.anchors)
    assert "x1b0" in one.anchors
    assert "#x1e1" in one.links
    assert "#x1b0" in one.links


def test_a_stream_without_times_has_no_drawing() -> None:
    """A body alone is shown without inventing when it came."""
    streamed = example("stream/json", good=True)
    one = page(run_of(replace(streamed, timed=False)))
    assert list(one.all("svg")) == []
    assert "x1e1" in one.anchors


def test_refusals_are_shown_with_their_request() -> None:
    """A plain answer has its body as text, and the request that it answers."""
    exchange = example("error/schema")
    assert exchange.request is not None
    text = page(run_of(exchange)).text
    assert f"{exchange.request.method} {exchange.request.url}" in text
    assert exchange.body.decode() in text.replace(" ", " ")
    assert exchange.request.body.decode()[:40] in text


def test_keys_are_masked_where_they_were_recorded() -> None:
    """The page shows what the recording holds of the key, and that is nothing."""
    text = page(recorded("engines/xllamacpp/stream_happy.jsonl")).text
    assert "Bearer ***" in text


def test_passes_and_what_was_not_looked_at_are_there() -> None:
    """Each rule is somewhere: passed with its evidence, or left out with the reason."""
    run = run_of(example("stream/incremental", "stream-long", good=True))
    text = page(run).text
    assert "stream-long: 80 events with text in" in text
    for rule, outcome in run.report.rules.items():
        if outcome is Outcome.SKIP:
            assert run.why_skipped(rule) in text
        else:
            assert rule in text


def test_the_matrix_has_a_cell_for_each_look() -> None:
    """One endpoint: cases across, and the sign of each leads to the event or the answer."""
    run = engines()
    one = page(run)
    cells = [link for link in one.all("a") if link.get("aria-label") == "fail"]
    failing = [
        (judgement.case, rule)
        for judgement in run.report.judgements
        for rule, outcome in judgement.rules.items()
        if outcome is Outcome.FAIL
    ]
    rules = [rule for rule, outcome in run.report.rules.items() if outcome is Outcome.FAIL]
    assert len(cells) == len(failing) + len(rules)


def test_several_runs_stand_side_by_side() -> None:
    """Several endpoints: one column each, under the name of each, and its own answers."""
    runs = [
        replace(everything_wrong(), target="https://one.example/v1/chat/completions"),
        replace(everything_right(), target="https://two.example/v1/chat/completions"),
        replace(nothing_established(), target="https://two.example/v1/chat/completions"),
    ]
    runs[2] = replace(runs[2], source="third.jsonl")
    one = page(*runs)
    assert "3 endpoints, side by side" in one.text
    for name in ("one.example", "two.example", "third.jsonl"):
        assert name in one.text
    assert {"r1", "r2", "r3", "r1-answers", "stream/json@1"} <= set(one.anchors)
    assert "stream/json@2" not in one.anchors


def test_known_failures_are_named_and_stay_failures() -> None:
    """The reason stands with the rule; the verdict is what was proven."""
    entry = KnownFailure(id="stream/model-echoed", because="the vendor knows")
    run = replace(run_of(example("stream/model-echoed")), known=(entry,))
    text = page(run).text
    assert "Known failure: the vendor knows" in text
    assert "✗ does not conform" in text
    stale = replace(run_of(example("stream/json", good=True)), known=(entry,))
    assert "known failure that passes: take it out of the list" in page(stale).text


def test_a_page_needs_a_run() -> None:
    """Nothing can be written about nothing."""
    with pytest.raises(ValueError, match="at least one run"):
        html_report([])


def test_a_page_stays_small() -> None:
    """A default run fits into a megabyte, and whatever else is judged into half as much again."""
    sizes = {name: len(html.encode()) for name, html, _ in written()}
    wide = {"everything wrong", "all", "hostile, several"}
    assert {name for name, size in sizes.items() if size > MEGABYTE} <= wide
    assert max(sizes.values()) < 1.5 * MEGABYTE


def test_what_is_left_out_is_counted() -> None:
    """Long streams, large bodies, and too many exchanges, cases and runs say so."""
    text = page(long_run()).text
    assert "rows left out here: in the recording" in text
    assert "bytes left out here: in the recording" in text
    refusal = example("error/schema")
    many = run_of(*(replace(refusal, case=f"case-{n}") for n in range(allowance.EXCHANGES + 7)))
    text = page(many).text
    assert f"and {allowance.EXCHANGES + 7 - 12} more" in text
    assert "7 further exchanges are in the recording only" in text
    runs = [recorded("quirks/q013.jsonl")] * (allowance.RUNS + 1)
    assert "1 further endpoint is not on this page" in page(*runs).text


def test_what_is_amiss_is_shown_before_the_rest() -> None:
    """Where not every exchange fits, those at fault do."""
    good, bad = example("stream/json", "good", good=True), example("stream/json", "bad")
    run = run_of(*[good] * (allowance.EXCHANGES + 30), bad)
    assert f"x{allowance.EXCHANGES + 31}" in page(run).anchors


def test_tables_have_headers_and_regions_have_names() -> None:
    """Whoever hears the page is told what a cell is about, and can scroll with the keyboard."""
    for name, _, one in written():
        assert all("scope" in header for header in one.all("th")), name
        regions = [part for part in one.all("div") if part.get("role") == "region"]
        assert all(part["aria-label"] and part["tabindex"] == "0" for part in regions), name
        assert [part["lang"] for part in one.all("html")] == ["en"]


def test_headings_leave_no_level_out() -> None:
    """The page has one first heading, and below each level only the next begins."""
    for name, _, one in written():
        levels = [int(e.tag[1]) for e in one.elements if re.fullmatch("h[1-6]", e.tag)]
        assert levels.count(1) == 1, name
        steps = itertools.pairwise(levels)
        assert all(later <= earlier + 1 for earlier, later in steps), name


def contrast(one: str, other: str) -> float:
    """The contrast of two colours `#rrggbb` (WCAG 2.2, relative luminance)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_text_has_contrast_in_light_and_dark() -> None:
    """Every colour of text reaches 4.5 on every ground that it stands on (WCAG 2.2 AA)."""
    css = STYLE.findall(html_report([run_of()]))[0]
    schemes = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    assert len(schemes) == 3
    for scheme in schemes[:2]:
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", scheme))
        for ink in ("ink", "quiet", "link", "p", "f", "k", "e", "a", "s"):
            for ground in ("page", "soft"):
                assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
        assert contrast(colours["ink"], colours["tint"]) >= 4.5
        assert contrast(colours["on-mark"], colours["mark"]) >= 4.5
