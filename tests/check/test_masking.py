"""A key that an endpoint repeats is seen by nobody."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cheapgpu.check.events import Sent, Step
from cheapgpu.check.masking import Mask, secrets_of
from cheapgpu.core.exchange import Closed, Head, Read

KEY = "sk-abcabcabd"


def reads(*pieces: bytes, key: str = KEY) -> list[Read]:
    """The reads that come out where these go in, one each 0.1 s."""
    steps: list[Step] = []
    mask = Mask(key, steps.append)
    at = 0
    for number, piece in enumerate(pieces):
        mask(Read(t=number / 10, at=at, data=piece))
        at += len(piece)
    mask(Closed(t=9.0, how="length"))
    assert isinstance(steps[-1], Closed)
    return [step for step in steps if isinstance(step, Read)]


def test_key_in_one_read_becomes_stars_of_its_length() -> None:
    """Every occurrence is masked, and the offsets around it stay."""
    before = b"data: sk-abcabcabd and sk-abcabcabd\n\n"
    (read,) = reads(before)
    assert read.data == b"data: ************ and ************\n\n"
    assert len(read.data) == len(before)


@given(st.lists(st.integers(0, 60), max_size=12))
def test_key_is_found_however_it_was_cut(cuts: list[int]) -> None:
    """However a body is cut into reads, no key is left in it, and nothing else is changed."""
    body = b"sk-sk-abcabcabcabcabd sk-abcabcabd. sk-abcabcabdsk-abcabcabdsk-abcab"
    marks = [0, *sorted(cuts), len(body)]
    out = reads(*(body[start:end] for start, end in pairwise(marks)))
    masked = b"".join(read.data for read in out)
    assert masked == body.replace(KEY.encode(), b"*" * len(KEY))
    assert [read.at for read in out] == [
        sum(len(before.data) for before in out[:number]) for number in range(len(out))
    ]
    assert [read.t for read in out] == sorted(read.t for read in out)


def test_what_cannot_begin_the_key_is_passed_on_at_once() -> None:
    """A read that ends like no beginning of the key leaves unchanged, with its time."""
    assert reads(b"data: 1\n\n", b"data: 2\n\n") == [
        Read(t=0.0, at=0, data=b"data: 1\n\n"),
        Read(t=0.1, at=9, data=b"data: 2\n\n"),
    ]


def test_end_that_may_begin_the_key_waits() -> None:
    """The end of a read that may begin the key comes with the next read, or at the end."""
    assert reads(b"x sk-ab", b"cde", b"s") == [
        Read(t=0.0, at=0, data=b"x "),
        Read(t=0.1, at=2, data=b"sk-abcde"),
        Read(t=0.2, at=10, data=b"s"),
    ]


def test_key_in_a_header_field_is_masked() -> None:
    """Header fields are whole, so one look is enough."""
    steps: list[Step] = []
    mask = Mask(KEY, steps.append)
    mask(Sent(t=0.1))
    mask(Head(t=0.2, status=401, headers=(("x-echo", f"Bearer {KEY}!"),)))
    assert steps == [
        Sent(t=0.1),
        Head(t=0.2, status=401, headers=(("x-echo", "Bearer ***!"),)),
    ]


def test_word_of_every_answer_is_no_secret() -> None:
    """A key so short that innocent text holds it is not masked: that would change the evidence."""
    assert secrets_of("stop") == []
    assert secrets_of(None) == []
    assert secrets_of(KEY) == [KEY]


@given(st.lists(st.integers(0, 90), max_size=12))
def test_key_is_found_as_json_may_spell_it(cuts: list[int]) -> None:
    """A key with a slash or a dash escaped is as good as the key, and is masked however cut."""
    key = "sk-abc/def"
    spelled = [rb"sk-abc\/def", rb"sk\u002dabc/def", rb"s\u006B-abc\u002fdef", b"sk-abc/def"]
    body = b'{"error": "' + b", ".join(spelled) + b'", "x": "sk-abc\\"}'
    marks = [0, *sorted(cuts), len(body)]
    out = reads(*(body[start:end] for start, end in pairwise(marks)), key=key)
    masked = b"".join(read.data for read in out)
    expected = body
    for spelling in spelled:
        expected = expected.replace(spelling, b"*" * len(spelling))
    assert masked == expected
