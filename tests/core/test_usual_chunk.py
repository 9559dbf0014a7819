"""The chunk with usual members: read quickly, it says what it says to the schema."""

import random
from typing import Any

import pytest

from cheapgpu.core import schema, strict_json
from cheapgpu.core.chunk_reading import read_chunk
from cheapgpu.core.limits import JSON_DEPTH
from cheapgpu.core.messages import chunk_of, fast_chunk
from cheapgpu.core.strict_json import Unreadable
from cheapgpu.core.usual_chunk import usual_chunk
from tests.core.streams import TEXTS, chunk, damage

DETAILS = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def random_event(chance: random.Random) -> bytes:
    """One event of some engine, mostly with usual members only."""
    style: dict[str, Any] = {
        "ensure_ascii": chance.random() < 0.3,
        "separators": chance.choice(((",", ":"), (", ", ": "))),
    }
    for name in ("service_tier", "system_fingerprint", "prompt_token_ids", "odd"):
        if chance.random() < 0.2:
            style[name] = chance.choice((None, "a:b", {"id": 1.5e-9, "id2": []}))
    text = chance.choice(TEXTS)
    match chance.randrange(4):
        case 0:
            return chunk({"role": "assistant", "content": text}, **style)
        case 1:
            return chunk({"content": text, "refusal": None}, **style)
        case 2:
            return chunk({}, chance.choice(("stop", "length", "else")), **style)
    usage = {**DETAILS, **chance.choice(({}, {"prompt_tokens_details": {"cached_tokens": 1}}))}
    return chunk(None, usage=usage, **style)


def check_agreement(seed: int) -> int:
    """Compare the quick ways with the schema on one event; count those that went the quickest."""
    chance = random.Random(seed)
    event = random_event(chance)
    data = (damage([event], chance) if chance.random() < 0.7 else event)[6:-2]
    value = strict_json.decode(data)
    for quick in (usual_chunk(data), fast_chunk(data)):
        if quick is not None:
            assert not isinstance(value, Unreadable), (seed, data)
            assert schema.is_valid("chunk", value), (seed, data)
            assert value.get("error") is None
            assert read_chunk(quick) == read_chunk(chunk_of(value)), (seed, data)
    return usual_chunk(data) is not None


def test_what_is_read_quickly_is_what_the_schema_accepts() -> None:
    """On damaged events neither quick way reads anything that the schema would read otherwise."""
    assert sum(map(check_agreement, range(5000))) > 1500


@pytest.mark.long
@pytest.mark.parametrize("block", range(40))
def test_what_is_read_quickly_is_what_the_schema_accepts_at_length(block: int) -> None:
    """As above, for a million events more."""
    first = 1_000_000 + block * 25_000
    assert sum(map(check_agreement, range(first, first + 25_000))) > 7000


@pytest.mark.parametrize("place", [b'{"id"', b'{"index"', b'{"content"', b'{"prompt_tokens"'])
def test_a_member_that_is_not_usual_is_left_to_the_schema(place: bytes) -> None:
    """At every level; its chunk is read all the same, by way of a dictionary."""
    delta, last = chunk({"content": "a"}), chunk(None, usage=DETAILS)
    event = delta if place in delta else last
    odd = event.replace(place, b'{"odd":1,' + place[1:])[6:-2]
    assert usual_chunk(event[6:-2]) is not None
    assert usual_chunk(odd) is None
    assert fast_chunk(odd) is not None


SMALL = b'{"id":"i","object":"chat.completion.chunk","created":0,"model":"m",'
SMALLEST = SMALL + b'%b"choices":[],"usage":null}'
SMALL_DELTA = (
    SMALL + b'"choices":[{"index":0,"delta":{%b"content":""},"finish_reason":null}],"usage":null}'
)


@pytest.mark.parametrize(("around", "own"), [(SMALLEST, 1), (SMALL_DELTA, 4)])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"":', b"}")])
@pytest.mark.parametrize("depth", [JSON_DEPTH, JSON_DEPTH + 1])
def test_no_chunk_is_so_short_that_its_depth_is_overlooked(
    around: bytes, own: int, opening: bytes, closing: bytes, depth: int
) -> None:
    """Beside the least that a chunk is, the limit is found at the bracket that exceeds it."""
    inner = depth - own
    nested = opening * inner + b"1" + closing * inner
    for name, read in (
        (b"", fast_chunk),
        (b"refusal" if own > 1 else b"service_tier", usual_chunk),
    ):
        data = around % (b'"%b":%b,' % (name, nested))
        assert isinstance(strict_json.decode(data), Unreadable) is (depth > JSON_DEPTH)
        assert (read(data) is None) is (depth > JSON_DEPTH)
