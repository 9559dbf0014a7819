"""The parts of the HTML report: what is chosen, what a row says, what a drawing shows."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cheapgpu.core.exchange import Closed, Exchange, Head, Read
from cheapgpu.core.findings import Finding, Outcome
from cheapgpu.core.rules import RULES
from cheapgpu.report.page.allowance import choose, share
from cheapgpu.report.page.byte_view import ByteRow, byte_rows
from cheapgpu.report.page.event_table import EventRow, Gap, event_rows
from cheapgpu.report.page.example_diff import example_diff
from cheapgpu.report.page.fault_excerpt import excerpt_of
from cheapgpu.report.page.safe_text import cut, visible
from cheapgpu.report.page.stream_items import Item, stream_items
from cheapgpu.report.page.timeline import WIDTH, timeline
from tests.report.runs import example, run_of

COUNTS = st.lists(st.integers(0, 50), max_size=12)


def stream(*reads: bytes, total: float = 1.0) -> Exchange:
    """A streamed answer in these reads, a tenth of a second apart, from 0.1 s on."""
    at = [sum(map(len, reads[:n])) for n in range(len(reads))]
    return Exchange(
        case="stream",
        sent=0.0,
        head=Head(t=0.1, status=200, headers=(("content-type", "text/event-stream"),)),
        reads=tuple(Read(t=0.1 * (n + 1), at=at[n], data=data) for n, data in enumerate(reads)),
        closed=Closed(t=total, how="chunked-end"),
    )


def items_of(exchange: Exchange) -> list[Item]:
    """What came in a stream that was judged."""
    return stream_items(run_of(exchange), exchange, judged=True)


def said(exchange: Exchange) -> list[list[str]]:
    """What the rows of its table say."""
    rows = event_rows(exchange, items_of(exchange), [], 100)
    return [
        [f"{one.word} {one.value}".strip() for one in row.said]
        for row in rows
        if isinstance(row, EventRow)
    ]


@given(COUNTS, st.integers(0, 200), st.integers(0, 40))
def test_shares_are_fair_and_never_too_much(wanted: list[int], total: int, most: int) -> None:
    """Nobody gets too much, nor do all together; who got less than wanted got as much as anyone."""
    given_out = share(wanted, total, most)
    assert all(got <= min(want, most) for got, want in zip(given_out, wanted, strict=True))
    assert sum(given_out) <= total
    for got, want in zip(given_out, wanted, strict=True):
        assert got == min(want, most) or got + 1 >= max(given_out)


@given(st.integers(0, 60), st.lists(st.integers(0, 59), max_size=10), st.integers(0, 40))
def test_chosen_are_as_many_as_fit_and_in_order(count: int, telling: list[int], room: int) -> None:
    """All where they fit; otherwise exactly as many as there is room for, each once, sorted."""
    chosen = choose(count, [one for one in telling if one < count], room)
    assert len(chosen) == min(count, room)
    assert chosen == sorted(set(chosen))
    assert all(0 <= one < count for one in chosen)


def test_what_tells_most_is_chosen() -> None:
    """Beginning, end, and the first of the telling ones."""
    assert choose(100, [50, 60, 70], 8) == [0, 1, 2, 50, 60, 70, 98, 99]


def test_letters_that_hide_are_codes() -> None:
    """Controls, bidi marks, fillers and piles of marks; scripts with marks stay as they are."""
    assert visible("a\u202eb\x00\u3164") == "a<U+202E>b<00><U+3164>"
    assert visible("हिन्दी café 日本語 🌧") == "हिन्दी café 日本語 🌧"
    assert visible("e" + "\u0301" * 5).endswith("<U+0301><U+0301>")
    assert visible(" \u0301") == " <U+0301>"
    assert cut("abcdef", 4) == "abc…"


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.data())
def test_rows_hold_every_byte_once(reads: list[bytes], data: st.DataObject) -> None:
    """Hex digits of all rows together are the body; a row has sixteen bytes but for the last."""
    exchange = stream(*reads)
    body = exchange.body
    edges = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    spans = list(zip(edges[::2], edges[1::2], strict=False))
    rows = [row for row in byte_rows(exchange, spans, spans, 100) if isinstance(row, ByteRow)]
    digits = "".join(re.sub(r"<[^>]*>| ", "", row.hex) for row in rows)
    assert bytes.fromhex(digits) == body
    assert [row.at for row in rows] == list(range(0, len(body), 16))
    assert sum(row.hex.count("<i>") for row in rows) == sum(row.hex.count("</i>") for row in rows)


def test_rows_say_what_begins_in_them() -> None:
    """Reads with their times, events, faults underlined, every second event tinted."""
    exchange = stream(b"data: a\n\n", b"data: b\n\n")
    first, second = byte_rows(exchange, [(0, 9), (9, 18)], [(6, 7)], 9)
    assert isinstance(first, ByteRow)
    assert isinstance(second, ByteRow)
    assert (first.read, first.t, first.event) == (1, 0.1, 1)
    assert first.hex.startswith("<i>64 61 74 61 3a 20</i> <i><u>61</u></i>")
    assert " <b></b>64" in first.hex
    assert (second.at, second.read, second.event) == (16, 0, 0)
    assert second.text == "⏎⏎"


def test_rows_of_a_fault_are_shown_before_others() -> None:
    """A fault in the middle of a long body is there, and what is left out is counted."""
    exchange = stream(b"x" * 16 * 100)
    rows = byte_rows(exchange, [], [(800, 802)], 8)
    assert 800 in [row.at for row in rows if isinstance(row, ByteRow)]
    left_out = sum(row.left_out for row in rows if isinstance(row, Gap))
    assert left_out == 16 * 92


def test_bytes_of_a_stranger_are_escaped() -> None:
    """The only markup in a row is its own."""
    (row,) = byte_rows(stream(b"<b>&amp;\x00\xff"), [], [], 9)
    assert isinstance(row, ByteRow)
    assert row.text == "&lt;b&gt;&amp;amp;··"


def test_a_stream_is_told_in_its_order() -> None:
    """Comments, events and what was never dispatched, each with its place."""
    exchange = stream(b": wait\n\n", b"data: [DONE]\n\n", b"data: more")
    items = items_of(exchange)
    assert [item.kind for item in items] == ["comment", "event", "discarded"]
    assert [item.at for item in items] == [0, 8, 22]
    assert [item.number for item in items] == [0, 1, 0]
    assert said(exchange) == [
        ["comment : wait"],
        ["[DONE]"],
        ["10 bytes never dispatched data: more"],
    ]


def test_rows_say_what_an_event_is() -> None:
    """Role, text, finish, usage, members beyond the profile, errors, and what is no chunk."""
    good = example("stream/json", good=True)
    assert said(good)[0] == ["role assistant"]
    assert said(good)[1] == ['text "Rain"']
    assert said(good)[-3:] == [["finish stop"], ["usage 12 + 3 = 15"], ["[DONE]"]]
    error = stream(b'data: {"error":{"message":"out of memory","type":"server_error"}}\n\n')
    assert said(error) == [["error out of memory"]]
    assert said(stream(b"data: x{\n\n")) == [["no chunk x{"]]
    thinking = example("stream/json", good=True)
    body = thinking.body.replace(b'"content":"Rain"', b'"reasoning_content":"Hm"')
    told = said(replace(thinking, reads=(Read(t=0.1, at=0, data=body),)))
    assert told[1] == ["beside it reasoning_content"]


def test_rules_that_were_not_judged_are_not_named() -> None:
    """An answer that was not held to the rules of a stream shows none as broken."""
    exchange = stream(b"data: x\n\n")
    run = run_of(exchange)
    assert [item.broken for item in stream_items(run, exchange, judged=True)] == [("stream/json",)]
    assert [item.broken for item in stream_items(run, exchange, judged=False)] == [()]


def test_events_with_findings_are_shown_before_others() -> None:
    """A fault in the middle of a long stream is in the table, and a gap on either side."""
    exchange = stream(*(b"data: {}\n\n" for _ in range(100)))
    rows = event_rows(exchange, items_of(exchange), [50], 8)
    assert 50 in [row.item.number for row in rows if isinstance(row, EventRow)]
    assert sum(row.left_out for row in rows if isinstance(row, Gap)) == 92


def test_a_drawing_is_to_scale() -> None:
    """A read in the middle of the time is in the middle; its bar is as high as its bytes."""
    drawn = timeline(stream(b"data: {}\n\n" * 4, b"", b"", b"", b"data: {}\n\n"), [], 100)
    assert drawn is not None
    assert re.findall(r"M(\d+) 44v-(\d+)", drawn.lanes[0].path) == [("100", "44"), ("500", "11")]
    assert drawn.waited == 100
    assert drawn.ticks == ((0, "0 s"), (200, "0.2 s"), (400, "0.4 s"), (600, "0.6 s"),
                           (800, "0.8 s"), (1000, "1 s"))  # fmt: skip


def test_text_that_was_held_back_is_seen() -> None:
    """Many events under one bar: the marks of the text are one, where the read is."""
    good = example("stream/json", good=True)
    flush = replace(good, reads=(Read(t=0.9, at=0, data=good.body),))
    flush = replace(flush, closed=Closed(t=1.0, how="chunked-end"))
    drawn = timeline(flush, items_of(flush), 100)
    assert drawn is not None
    text = next(lane for lane in drawn.lanes if lane.name == "text")
    assert re.findall(r"M(\d+) ", text.path) == ["900"]
    assert drawn.words.startswith("6 events in 1 read")


def test_comments_and_faults_have_lanes_of_their_own() -> None:
    """Heartbeats are visibly no content, and faults are marked where they came."""
    exchange = stream(b": wait\n\n", b"data: {}\n\n")
    drawn = timeline(exchange, items_of(exchange), 100)
    assert drawn is not None
    assert [lane.name for lane in drawn.lanes] == ["reads", "other events", "comments", "faults"]
    assert timeline(replace(exchange, timed=False), [], 100) is None


def test_a_long_drawing_is_no_larger() -> None:
    """Ten thousand reads are drawn with as many marks as there is room for."""
    exchange = stream(*[b"x"] * 10_000, total=1001.0)
    for room, marks in ((100_000, WIDTH // 2 + 1), (100, 21)):
        drawn = timeline(exchange, [], room)
        assert drawn is not None
        assert drawn.lanes[0].path.count("M") <= marks


def test_examples_show_where_they_differ() -> None:
    """What differs is marked on either side, and what is alike is counted."""
    for rule in RULES:
        diff = example_diff(rule.id)
        assert any(line.differs for line in (*diff.good, *diff.bad)), rule.id
        assert len(diff.good) < 24, rule.id
        assert len(diff.bad) < 24, rule.id
    missing = example_diff("stream/chunk-schema")
    assert [line.differs for line in missing.good if line.kind == "own"] == [',"usage":null']


def test_an_excerpt_is_of_one_event() -> None:
    """The bytes at fault with what stands around them, within their own event."""
    exchange = stream(b"data: one\n\ndata: two\n\ndata: three\n\n")
    finding = Finding(rule="stream/json", outcome=Outcome.FAIL, at=17, length=3)
    found = excerpt_of(exchange, finding)
    assert found is not None
    assert (found.before, found.fault, found.after, found.ends) == ("data: ", "two", "⏎⏎", False)


def test_an_excerpt_of_what_is_missing_is_the_end() -> None:
    """Where something did not come, the end of the body is shown; elsewhere nothing."""
    exchange = stream(b"data: one\n\n")
    missing = excerpt_of(exchange, Finding(rule="stream/done-present", outcome=Outcome.FAIL))
    assert missing is not None
    assert missing.ends
    assert excerpt_of(exchange, Finding(rule="stream/json", outcome=Outcome.FAIL)) is None
    nothing = Finding(rule="stream/done-present", outcome=Outcome.FAIL)
    assert excerpt_of(stream(), nothing) is None
    long = Finding(rule="stream/json", outcome=Outcome.FAIL, at=0, length=2000)
    cut_down = excerpt_of(stream(b"x" * 2000), long)
    assert cut_down is not None
    assert " … " in cut_down.fault
