"""The incremental verifier: one judgement, whatever the way through it and the cut of the reads."""

import json
import random
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from cheapgpu.core.chunk_shape import decoder_of
from cheapgpu.core.limits import FINDINGS_KEPT
from cheapgpu.core.stream_verifier import StreamEvent, StreamSummary, StreamVerifier
from cheapgpu.core.template import learn
from tests.core.streams import MODEL, TEXTS, chunk, damage, split, stream

Seen = list[tuple[Any, ...]]


def read(reads: Iterable[bytes], *, fast: bool = True, **limits: int) -> tuple[Seen, StreamSummary]:
    """Everything that a verifier says of a stream in these reads."""
    verifier = StreamVerifier(model=MODEL, limit=100, fast=fast, **limits)
    events: list[StreamEvent] = []
    for data in reads:
        events += verifier.feed(data)
    seen: Seen = [
        (e.step, e.content, e.at, e.length, e.finish_reason, e.usage, e.broken) for e in events
    ]
    return seen, verifier.finish("whole")


def random_stream(chance: random.Random) -> list[bytes]:
    """A conforming stream in the style of some engine, of up to thirty texts."""
    style: dict[str, Any] = {
        "ensure_ascii": chance.random() < 0.3,
        "separators": chance.choice(((",", ":"), (", ", ": "))),
    }
    if chance.random() < 0.3:
        style["system_fingerprint"] = chance.choice((None, "fp", "a:b", "\\"))
    if chance.random() < 0.2:
        style["id"] = "c:1"
    if chance.random() < 0.1:
        style["error"] = None
    if chance.random() < 0.1:
        style["created"] = 1700000000.0
    if chance.random() < 0.05:
        style["x"] = 0.5
    texts = chance.choices(TEXTS, k=chance.randint(0, 30))
    events = stream(texts, **style)
    if chance.random() < 0.3:
        # A member that changes from chunk to chunk, flat or nested, and never fits a template.
        # (`logprobs` is a usual member, `extra` is not.)
        value = chance.choice(("n", '{"t":n}', '[{"a":"x:y","b":n}]', '"t:n"', "-ne-05"))
        name = chance.choice((b'"extra":', b'"logprobs":'))
        deep = chance.random() < 0.1
        events = [
            event.replace(b'"index"', name + value.replace("n", str(n)).encode() + b',"index"')
            for n, event in enumerate(events)
        ]
        if deep:
            depth = chance.choice((120, 126, 140))
            nested = name + b"[" * depth + b"]" * depth + b',"more":'
            events[-4:-3] = [event.replace(name, nested) for event in events[-4:-3]]
    if chance.random() < 0.3:
        events = [event.replace(b'"x":0.5', b'"x":1e400') for event in events]
    if chance.random() < 0.1:
        failure = chance.choice((b'"error":{"message":"m","type":"t"}', b'"error":1'))
        index = chance.randrange(len(events))
        events[index] = events[index].replace(b'"error":null', failure)
    return events


def check_agreement(seed: int) -> None:
    """Compare the ways through the verifier on one damaged stream, cut in several ways."""
    chance = random.Random(seed)
    body = damage(random_stream(chance), chance)
    limits: dict[str, Any] = {}
    if chance.random() < 0.1:
        limits["stream_events"] = chance.randint(1, 20)
    if chance.random() < 0.1:
        limits["event_bytes"] = chance.randint(150, 300)
    if chance.random() < 0.1:
        limits["body_bytes"] = chance.randint(0, len(body) + 10)
    plain = read([body], fast=False, **limits)
    for reads in ([body], split(body, chance), split(body, chance)):
        assert read(reads, **limits) == plain, (seed, body)
        assert read(reads, fast=False, **limits) == plain, (seed, body)


@pytest.mark.parametrize("block", range(20))
def test_every_way_through_gives_the_same_judgement(block: int) -> None:
    """Template, familiar chunk and full way agree on damaged streams however they are cut."""
    for seed in range(block * 100, (block + 1) * 100):
        check_agreement(seed)
    assert read(stream(TEXTS))[1].outcome == "complete"


@pytest.mark.long
@pytest.mark.parametrize("block", range(40))
def test_every_way_through_gives_the_same_judgement_at_length(block: int) -> None:
    """As above, for two hundred thousand streams more."""
    for seed in range(1_000_000 + block * 5000, 1_000_000 + (block + 1) * 5000):
        check_agreement(seed)
    assert read(stream(TEXTS))[1].outcome == "complete"


def test_the_verifier_says_where_it_is() -> None:
    """State, number of events and whether anything was found can be asked at any time."""
    verifier = StreamVerifier(model=MODEL)
    events = stream(["a", "b"])
    verifier.feed(events[0])
    assert (verifier.state, verifier.events, verifier.broken) == ("open", 1, False)
    verifier.feed(b"".join(events[1:5]))
    assert (verifier.state, verifier.events, verifier.broken) == ("summed", 5, False)
    verifier.feed(b"data: x\n\n")
    assert verifier.broken


def test_text_is_given_decoded_and_as_a_json_string() -> None:
    """Whichever way an event went, its text can be had as text and as the body of a JSON string."""
    for fast in (True, False):
        verifier = StreamVerifier(model=MODEL, fast=fast)
        events = [e for text in TEXTS for e in verifier.feed(chunk({"content": text}))]
        assert [event.content for event in events] == list(TEXTS)
        assert [json.loads(b'"%b"' % event.raw) for event in events] == list(TEXTS)


@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_a_body_over_the_limit_is_read_up_to_it(size: int) -> None:
    """Where the limit of the body falls, reading stops; what came before is judged as ever."""
    body = b"".join(stream(["a"] * 20))
    pieces = [body[n : n + size] for n in range(0, len(body), size)]
    for fast in (True, False):
        seen, summary = read(pieces, fast=fast, body_bytes=len(body) - 50)
        assert (len(seen), summary.stopped, summary.outcome) == (22, True, "unknown")
        assert {f.outcome.word for f in summary.findings} == {"unknown", "error"}


def test_a_stream_with_findings_of_every_kind_keeps_few() -> None:
    """However many different findings a rule gives, a bounded number is kept with its place."""
    events = [chunk({"content": "a"}, usage=n) for n in range(2, 100)]
    names = [chunk({f"x{n}": 1, "role": n}, index=n) for n in range(50)]
    _, summary = read([*events, *names])
    assert sum(f.rule == "stream/chunk-schema" for f in summary.findings) <= FINDINGS_KEPT
    many = [chunk({}, usage={"prompt_tokens": n, "completion_tokens": 1, "total_tokens": 0})
            for n in range(100)]  # fmt: skip
    _, summary = read(many)
    assert sum(f.rule == "stream/usage-adds-up" for f in summary.findings) == FINDINGS_KEPT


def test_what_was_found_before_the_limit_of_the_body_stays() -> None:
    """A bad byte in an event that ends where the body's limit falls was read: it is a fault."""
    events = [event.replace(b'"a"', b'"\xff"') for event in stream(["a"])]
    size = len(events[0] + events[1])
    for fast in (True, False):
        _, summary = read([b"".join(events)], fast=fast, body_bytes=size)
        assert "stream/utf8" in {finding.rule for finding in summary.findings}


@pytest.mark.parametrize("limits", [{"event_bytes": 250}, {"stream_events": 1}])
@pytest.mark.parametrize("cut", [0, 100, -2, -1])
def test_a_bad_byte_in_an_event_that_was_not_read_is_no_finding(
    limits: dict[str, int], cut: int
) -> None:
    """Where a limit ends the reading within an event, none of it was read, however it was cut."""
    first, second = chunk({"content": "a"}), chunk({"content": "b" * 100})
    second = second.replace(b"data: ", b'data: ["\xff"]\ndata: ', 1)
    for fast in (True, False):
        for reads in ([first + second], [first + second[:cut], second[cut:]]):
            _, summary = read(reads, fast=fast, **limits)
            assert summary.stopped
            assert "stream/utf8" not in {finding.rule for finding in summary.findings}


def test_a_read_that_ends_within_an_event_unlearns_nothing() -> None:
    """After half an event the template is still there: the events after it need no lesson."""
    events = [chunk({"content": "a"}) for _ in range(4)]
    verifier = StreamVerifier(model=MODEL)
    for _ in range(20):
        verifier.feed(events[0] + events[1][:-20])
        verifier.feed(events[1][-20:])
    assert isinstance(verifier.feed(events[0])[0].text, bytes)


@pytest.mark.parametrize(
    "event",
    [
        chunk({"content": "a"}).replace(b'"content"', b'"cont\\u0065nt"'),
        chunk({"x": {"content": "a"}, "content": "b"}),
        chunk({"content": "a"}, created=1e9),
    ],
)
def test_what_cannot_be_proved_makes_no_template(event: bytes) -> None:
    """A text that is not surely the content is never taken as a template's."""
    try:
        assert learn(event, "a" if b'"content":"b"' not in event else "b") is None
    except msgspec.DecodeError:
        assert b"1000000000.0" in event


def test_a_shape_needs_names_that_a_type_can_have() -> None:
    """A member whose name needs an escape takes the full way."""
    plain = chunk({"content": "a"})[6:-2]
    odd = plain.replace(b'"usage"', b'"a\\"b":1,"usage"')
    assert decoder_of(json.loads(plain)) is not None
    assert decoder_of(json.loads(odd)) is None


def test_a_duplicate_cannot_hide_behind_a_spelled_colon() -> None:
    """A colon of the id or model written as an escape leaves room for no second member."""
    model = "llama3:8b"
    events = [
        chunk({"content": f"{n}"}, model=model, x=n).replace(b'"x"', b'"extra":%d,"x"' % n)
        for n in range(5)
    ]
    bad = events[4].replace(b'"llama3:8b"', b'"llama3\\u003a8b"')
    bad = bad.replace(b'"content":"4"', b'"content":"evil","content":"good"')
    for fast in (True, False):
        verifier = StreamVerifier(model=model, fast=fast)
        for event in events[:4]:
            verifier.feed(event)
        assert not verifier.broken
        assert verifier.feed(bad)[0].broken == ("json",)


def test_an_empty_read_changes_nothing() -> None:
    """A mark that is no first bytes is text, though an empty read came before it."""
    events = stream(["a", "b"])
    reads = [b"", *events[:3], b"", b"\xef\xbb\xbf" + b"".join(events[3:])]
    assert read(reads) == read([b"".join(reads)], fast=False)


def test_a_hostile_event_costs_its_bytes() -> None:
    """Thousands of faults in one event are a bounded number of findings, each rule named once."""
    choices = b",".join([b"{}"] * 20_000)
    hostile = chunk({"content": "a"}).replace(b'"choices":[', b'"choices":[' + choices + b",")
    seen, summary = read([hostile, *stream(["a"])])
    assert seen[0][-1] == ("chunk-schema",)
    assert len(summary.findings) <= 2 * FINDINGS_KEPT


def test_large_shapes_are_not_kept() -> None:
    """A chunk with a great many names makes no type: types stay for the next streams."""
    plain = chunk({"content": "a"})[6:-2]
    many = plain.replace(b'"usage"', b",".join(b'"n%d":1' % n for n in range(500)) + b',"usage"')
    assert decoder_of(json.loads(many)) is None


#: What stands around the text of a content chunk.
BEFORE, OPENING, AFTER = chunk({"content": ""}).partition(b'"content":"')
ENDS = (BEFORE + OPENING, AFTER)


def verifier_of(**limits: int) -> StreamVerifier:
    """A verifier that knows the frame `ENDS` by two chunks that it was fed."""
    verifier = StreamVerifier(model=MODEL, limit=100, fast=True, **limits)
    for data in (chunk({"role": "assistant", "content": ""}), chunk({"content": "a"})):
        verifier.feed(data)
    return verifier


def check_passing(seed: int) -> int:
    """Compare texts that are passed with the same events fed; count those that were passed."""
    chance = random.Random(seed)
    bodies = [json.dumps(text)[1:-1].encode() for text in TEXTS]
    bodies += [json.dumps(text, ensure_ascii=False)[1:-1].encode() for text in TEXTS]
    bodies += [b'"', b"\\", b"\\ud800", b"\xff", "é".encode()[:1], "é".encode()[1:], b"\n"]
    limits: dict[str, int] = {}
    if chance.random() < 0.2:
        limits["stream_events"] = chance.randint(2, 8)
    if chance.random() < 0.2:
        limits["event_bytes"] = chance.randint(190, 500)
    if chance.random() < 0.2:
        limits["body_bytes"] = chance.randint(380, 2000)
    passing, feeding = verifier_of(**limits), verifier_of(**limits)
    passed = 0
    for _ in range(4):
        texts = chance.choices(bodies[: chance.choice((1, 40, 99))], k=chance.choice((1, 1, 2, 3)))
        before = (passing.events, passing.broken)
        one = len(texts) == 1 and chance.random() < 0.8
        taken = passing.pass_text(ENDS, texts[0]) if one else passing.pass_texts(ENDS, texts)
        data = b"".join(text.join(ENDS) for text in texts)
        if taken:
            passed += 1
            assert passing.broken == before[1]
        else:
            assert (passing.events, passing.broken) == before
            passing.feed(data)
        feeding.feed(data)
        assert (passing.events, passing.broken, passing.state) == (
            feeding.events,
            feeding.broken,
            feeding.state,
        ), (seed, texts)
    assert passing.finish("whole") == feeding.finish("whole"), seed
    return passed


def test_texts_that_are_passed_are_judged_as_events_that_are_fed() -> None:
    """Whatever the texts and limits: what is taken is sound, and what is not changes nothing."""
    assert sum(check_passing(seed) for seed in range(2000)) > 2000


def test_no_text_passes_before_its_frame_was_verified() -> None:
    """Nor after another one was, within an event, or once anything else ended the text."""
    new = StreamVerifier(model=MODEL)
    other = verifier_of()
    waiting = verifier_of()
    waiting.feed(b"data: ")
    over = verifier_of()
    over.feed(chunk({}, "stop"))
    ends = (ENDS[0].replace(b"c-1", b"c-2"), ENDS[1])
    for verifier, given in ((new, ENDS), (other, ends), (waiting, ENDS), (over, ENDS)):
        assert not verifier.pass_text(given, b"a")
        assert not verifier.pass_texts(given, [b"a", b"b"])
    assert other.pass_text(ENDS, b"a")
