"""The incremental verifier: one judgement, whatever the way through it and the cut of the reads."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

from cheapgpu.core.stream_verifier import StreamEvent, StreamSummary, StreamVerifier
from tests.core.streams import MODEL, TEXTS, damage, split, stream

Seen = list[tuple[Any, ...]]


def read(reads: Iterable[bytes], *, fast: bool = True, **limits: Any) -> tuple[Seen, StreamSummary]:
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
    texts = chance.choices(TEXTS, k=chance.randint(0, 30))
    events = stream(texts, **style)
    if chance.random() < 0.3:
        # A member that changes from chunk to chunk, flat or nested, and never fits a template.
        value = chance.choice(("n", '{"t":n}', '[{"a":"x:y","b":n}]', '"t:n"'))
        deep = chance.random() < 0.1
        events = [
            event.replace(b'"index"', b'"extra":%b,"index"' % value.replace("n", str(n)).encode())
            for n, event in enumerate(events)
        ]
        if deep:
            nested = b'"extra":' + b"[" * chance.choice((120, 126, 140)) + b"],"
            events[-4:-3] = [event.replace(b'"extra":', nested) for event in events[-4:-3]]
    if chance.random() < 0.1:
        failure = chance.choice((b'"error":{"message":"m","type":"t"}', b'"error":1'))
        index = chance.randrange(len(events))
        events[index] = events[index].replace(b'"error":null', failure)
    return events


def check_agreement(seed: int) -> None:
    """Compare the ways through the verifier on one damaged stream, cut in several ways."""
    chance = random.Random(seed)
    body = damage(random_stream(chance), chance)
    limits: dict[str, int] = {}
    if chance.random() < 0.1:
        limits["stream_events"] = chance.randint(1, 20)
    if chance.random() < 0.1:
        limits["event_bytes"] = chance.randint(150, 300)
    plain = read([body], fast=False, **limits)
    for reads in ([body], split(body, chance), split(body, chance)):
        assert read(reads, **limits) == plain, (seed, body)
        assert read(reads, fast=False, **limits) == plain, (seed, body)


@pytest.mark.parametrize("block", range(20))
def test_every_way_through_gives_the_same_judgement(block: int) -> None:
    """Template, familiar chunk and full way agree on damaged streams however they are cut."""
    for seed in range(block * 150, (block + 1) * 150):
        check_agreement(seed)
    assert read(stream(TEXTS))[1].outcome == "complete"


@pytest.mark.long
@pytest.mark.parametrize("block", range(40))
def test_every_way_through_gives_the_same_judgement_at_length(block: int) -> None:
    """As above, for two hundred thousand streams more."""
    for seed in range(1_000_000 + block * 5000, 1_000_000 + (block + 1) * 5000):
        check_agreement(seed)
    assert read(stream(TEXTS))[1].outcome == "complete"
