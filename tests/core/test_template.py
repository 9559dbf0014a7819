"""Templates: events that differ in their text alone, found one by one, all at once, or not."""

import json
import random

import msgspec
import pytest

from cheapgpu.core.template import Template, is_string_body, learn, learn_frame
from tests.core.streams import TEXTS, chunk

#: Bodies of JSON strings, and what is none: an escape of a code unit is left to a closer look.
BODIES = [b"", b" rain", b"a:b", b"\\n", b'say \\"x\\"', b"\\\\", "é雨".encode(), b"\xff", b"\x7f"]
NO_BODIES = [b'"', b"\\", b"\\u0061", b"\\x", b"\n", b"\x00", b'a","b":"c', b'\\\\"', b"a\\"]


def template() -> Template:
    """A template learned from one content chunk."""
    found = learn(chunk({"content": "Rain"}), "Rain")
    assert found is not None
    return found


def event(body: bytes) -> bytes:
    """The event of that template around other bytes."""
    return body.join(template().ends)


@pytest.mark.parametrize("body", BODIES)
def test_a_string_body_is_told_from_its_bytes(body: bytes) -> None:
    """Whether its UTF-8 is sound is asked elsewhere."""
    assert is_string_body(body)


@pytest.mark.parametrize("body", NO_BODIES)
def test_what_could_end_the_string_is_no_body(body: bytes) -> None:
    """Nor are escapes that JSON has not, or that may spell half of a surrogate pair."""
    assert not is_string_body(body)


def test_events_that_fit_are_followed_up_to_the_first_that_does_not() -> None:
    """What is returned are bodies, from any position, and no more than were asked for."""
    fitting = b"".join(map(event, BODIES))
    assert template().follow(fitting, 0, 99) == BODIES
    assert template().follow(b"data: x\n\n" + fitting, 9, 2) == BODIES[:2]
    assert template().follow(fitting[:-1], 0, 99) == BODIES[:-1]
    assert template().follow(b"data: x\n\n" + fitting, 0, 99) == []
    for body in NO_BODIES:
        mixed = event(b"a") + event(body) + event(b"b")
        assert template().follow(mixed, 0, 99)[:1] == [b"a"]
        assert body not in template().follow(mixed, 0, 99)


def test_all_texts_are_those_of_a_chunk_of_plain_events_alone() -> None:
    """One event or many; none at all where anything else is in the chunk."""
    plain = [body for body in BODIES if b"\\" not in body]
    assert template().all_texts(b"".join(map(event, plain))) == plain
    assert template().all_texts(event(b"a")) == [b"a"]
    prefix, suffix = template().ends
    for other in (b"", b"data: x\n\n", event(b"\\n"), *map(event, NO_BODIES)):
        assert template().all_texts(event(b"a") + other + event(b"b")) == (
            [] if other else [b"a", b"b"]
        )
    for part in (prefix, suffix, event(b"a")[:-1], event(b"a")[1:], prefix + prefix):
        assert template().all_texts(part) == []


def test_a_frame_longer_than_the_chunk_has_no_text() -> None:
    """A prefix and a suffix that share their bytes are no event."""
    shared = Template(b"ab", b"bc", (b"ab", b"bc"), b"bcab", 4, 8, 2, 2)
    assert shared.all_texts(b"abc") == []
    assert shared.all_texts(b"abbc") == [b""]


def follow_is_all_texts(seed: int) -> bool:
    """Compare two ways of finding texts in a chunk of random events; whether there were any."""
    chance = random.Random(seed)
    bodies = chance.choices([*BODIES, *NO_BODIES], (4,) * len(BODIES) + (1,) * len(NO_BODIES), k=3)
    data = b"".join(map(event, bodies))
    if chance.random() < 0.3:
        at = chance.randrange(len(data))
        data = data[:at] + chance.choice((b"", b"\n", b'"', b"\\")) + data[at + 1 :]
    every = template().all_texts(data)
    followed = template().follow(data, 0, 99)
    if every:
        assert followed == every, (seed, data)
        assert template().joint.join(every).join(template().ends) == data
    assert data.startswith(b"".join(map(event, followed)))
    assert all(map(is_string_body, followed))
    return bool(every)


def test_both_ways_of_finding_texts_agree() -> None:
    """What all_texts takes, follow takes as well; and neither takes what is no string body."""
    assert sum(follow_is_all_texts(seed) for seed in range(2000)) > 200


@pytest.mark.parametrize("text", TEXTS)
def test_a_frame_is_learned_of_chunks_outside_the_schema(text: str) -> None:
    """Members of any kind may be in it; the next text is then known by its place."""
    data = chunk({"content": text}, usage=..., extra={"content": [1]})
    value = json.loads(data[6:])
    found = learn_frame(data, value)
    assert found is not None
    again = json.loads(b"x".join(found.ends)[6:])
    assert again["choices"][0]["delta"]["content"] == "x"
    assert {**again, "choices": value["choices"]} == value


def test_a_frame_is_not_learned_where_the_text_is_not_shown_to_be_the_content() -> None:
    """Another member of that name comes first, or the content is spelled in another way."""
    for data in (
        chunk({"content": "a"}).replace(b'"content"', b'"con\\u0074ent"'),
        chunk({"content": "a"}).replace(b'"index":0', b'"x":{"content":"b"},"index":0'),
    ):
        assert learn_frame(data, json.loads(data[6:])) is None
    # A text that says it twice, as the strict reader never lets pass: the other one would change.
    data = chunk({"content": "a"}).replace(b'"content":"a"', b'"content":"a","content":"a"')
    value = json.loads(chunk({"content": "a"})[6:])
    assert learn_frame(data, value) is None


def test_a_frame_with_numbers_beyond_a_double_cannot_be_learned() -> None:
    """Only the slow reader knows them."""
    data = chunk({"content": "a"}, x=1).replace(b'"x":1', b'"x":1e999')
    with pytest.raises(msgspec.DecodeError):
        learn_frame(data, {})
