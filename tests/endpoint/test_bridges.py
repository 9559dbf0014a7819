"""Engines' answers leave the bridges conforming, or as honest failures; never otherwise."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheapgpu.core.request import ChatRequest, InputMessage
from tests.core.exchanges import STREAM_BODY
from tests.endpoint.bridging import (
    ENGINES,
    Bridged,
    asked,
    bridge,
    bridge_stream,
    entries,
    recorded,
    text_of,
    usage_of,
)

QUIRKS = entries("quirks")
RECORDINGS = entries("engines")
CUTS = [0, 1, 7, 1 << 20]

REQUEST = ChatRequest(
    model="m1",
    messages=[InputMessage("user", "Describe how rain forms.")],
    max_completion_tokens=64,
    stream=True,
)
PLAIN = ChatRequest(model="m1", messages=REQUEST.messages, max_completion_tokens=64, stream=False)


def is_answered(folder: str, file: str) -> bool:
    """Whether a recording is a 200 to a request that an endpoint passes on."""
    answered = recorded(folder, file)
    return answered.head is not None and answered.head.status == 200 and bool(asked(answered))


ANSWERED_QUIRKS = [entry for entry in QUIRKS if is_answered("quirks", entry["file"])]
ANSWERED = [entry for entry in RECORDINGS if is_answered("engines", entry["file"])]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("entry", ANSWERED_QUIRKS, ids=lambda entry: entry["file"])
def test_quirks_are_bridged_or_fail_as_they_must(entry: dict[str, Any], cut: int) -> None:
    """What must be bridged is complete with the same text and usage, what never may be fails."""
    answered = recorded("quirks", entry["file"])
    bridged = bridge(answered, cut=cut)
    assert bridged.is_honest, (bridged.failure, bridged.judgement.findings)
    if entry["bridge"] == "must":
        assert bridged.failure is None
    if entry["bridge"] == "never":
        assert bridged.failure is not None
    if bridged.failure is None:
        assert text_of(bridged.body) == text_of(answered.body)
        assert usage_of(bridged.body) == usage_of(answered.body)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("entry", ANSWERED, ids=lambda entry: entry["file"])
def test_real_engines_are_bridged(entry: dict[str, Any], cut: int) -> None:
    """Answers that ended normally are complete, with the same text and the same usage."""
    answered = recorded("engines", entry["file"])
    engine = entry["file"].partition("/")[0]
    bridged = bridge(answered, dialect=ENGINES[engine], cut=cut)
    assert bridged.is_honest, (bridged.failure, bridged.judgement.findings)
    if answered.ending == "cut":
        assert bridged.failure is not None
        assert bridged.failure.reason == "cut"
    elif engine == "transformers-serve":
        # It ignored the limit that was sent: the endpoint renames it, a recording cannot.
        assert bridged.failure is not None
        assert bridged.failure.reason == "limit-exceeded"
    else:
        assert bridged.failure is None
        assert text_of(bridged.body) == text_of(answered.body)
        assert usage_of(bridged.body) == usage_of(answered.body)


@pytest.mark.parametrize("entry", ANSWERED, ids=lambda entry: entry["file"])
def test_reads_change_nothing(entry: dict[str, Any]) -> None:
    """However the engine's bytes are cut, the buyer gets the same bytes, by whatever way."""
    answered = recorded("engines", entry["file"])
    dialect = ENGINES[entry["file"].partition("/")[0]]
    each = [bridge(answered, dialect=dialect, cut=cut) for cut in CUTS]
    assert len({bridged.body for bridged in each}) == 1
    assert all(bridged.edits == each[0].edits for bridged in each)


STREAMS = [
    b"".join(read.data for read in recorded("engines", entry["file"]).reads)
    for entry in ANSWERED
    if "stream" in entry["file"] and "nonstream" not in entry["file"]
] + [STREAM_BODY]
DAMAGE = [
    b"\n", b"\r", b"\n\n", b'"', b"\\", b"{", b"}", b",", b":", b" ", b"\xff", b"\xc3", b"\x00",
    b"data: ", b"data: [DONE]\n\n", b'"usage":null', b'"finish_reason":"stop"', b"null", b"[]",
    b'"error":{}', b'"content":"x"', b"1e999", b"-1", b"\\ud800", b"\xef\xbb\xbf", b": c\n", b"",
]  # fmt: skip


def damaged(rng: random.Random, body: bytes) -> bytes:
    """A body with a few of its bytes replaced, doubled, moved or taken away."""
    for _ in range(rng.randint(0, 3)):
        at, to = sorted(rng.randrange(len(body) + 1) for _ in range(2))
        to = min(to, at + rng.choice((0, 0, 1, 3, 20, 400)))
        body = body[:at] + rng.choice((*DAMAGE, body[at:to] * 2)) + body[to:]
        if rng.random() < 0.1:
            body = body[: rng.randrange(len(body) + 1)]
    return body


def cut_up(rng: random.Random, body: bytes) -> list[bytes]:
    """A body in reads: by its events, at random, or whole."""
    way = rng.random()
    if way < 0.3:
        return [event + b"\n\n" for event in body.split(b"\n\n")]
    if way < 0.4:
        return [body]
    ats = sorted(rng.randrange(len(body) + 1) for _ in range(rng.randint(1, 9)))
    return [body[a:b] for a, b in zip([0, *ats], [*ats, len(body)], strict=True)]


def check_damaged(seed: int) -> Bridged:
    """Whatever an engine sends, a buyer has a success without fault, or an honest failure."""
    rng = random.Random(seed)
    body = damaged(rng, rng.choice(STREAMS))
    if rng.random() < 0.3:
        body = body.replace(b"\n", b"\r\n")
    request = REQUEST if rng.random() < 0.8 else PLAIN
    whole = rng.random() < 0.8
    reads = cut_up(rng, body)
    bridged = bridge_stream(reads, request, dialect="llama.cpp", whole=whole)
    assert bridged.is_honest, (seed, bridged.failure, bridged.judgement.findings)
    single = [body[n : n + 1] for n in range(len(body))]
    if b"".join(reads) == body:
        again = bridge_stream(single, request, dialect="llama.cpp", whole=whole)
        assert (again.failure is None) == (bridged.failure is None), (seed, again.failure)
        if again.failure is None:
            assert again.body == bridged.body, seed
    return bridged


@pytest.mark.parametrize("block", range(10))
def test_damaged_streams_end_honestly(block: int) -> None:
    """No damage makes a crash, a success that the core does not accept, or a dishonest failure."""
    outcomes = [check_damaged(seed).failure is None for seed in range(block * 60, block * 60 + 60)]
    assert any(outcomes)
    assert not all(outcomes)


@pytest.mark.long
@pytest.mark.parametrize("block", range(100))
def test_damaged_streams_end_honestly_at_length(block: int) -> None:
    """The same for many more."""
    for seed in range(10_000 + block * 1000, 10_000 + block * 1000 + 1000):
        check_damaged(seed)


@given(st.lists(st.binary(max_size=200), max_size=8), st.booleans())
def test_noise_is_no_answer(reads: list[bytes], plain: bool) -> None:  # noqa: FBT001 -- drawn
    """Bytes of no engine at all end as a failure."""
    assert bridge_stream(reads, PLAIN if plain else REQUEST).failure is not None
