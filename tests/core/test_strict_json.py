"""Strict JSON: one text, one meaning, or the place where it fails."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cheapgpu.core import strict_json
from cheapgpu.core.limits import JSON_DEPTH
from cheapgpu.core.strict_json import Unreadable, decode, is_integral, too_deep

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**19), 10**19)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@given(JSON_VALUES, st.booleans())
def test_what_json_writes_is_read_back(value: Any, ascii_only: bool) -> None:  # noqa: FBT001 -- drawn
    """Any value that JSON can write is read as it was, escaped or not."""
    assert decode(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


def fraction(text: str) -> float:
    """A float as json reads it; half where the number is no integer though its float is one."""
    number = float(text)
    if math.isinf(number):
        return math.copysign(10**21, number)
    return math.copysign(0.5, number) if number.is_integer() > is_integral(text) else number


def whole(text: str) -> int:
    """An integer as json reads it; of one beyond every limit only the sign."""
    return int(text) if len(text) <= 21 else int(math.copysign(10**21, int(text[:4])))


@given(st.binary() | st.text().map(str.encode))
@example(b"1.0000000000000001")
@example(b"-1000000000000000000001")
@example(b"-1e999")
def test_nothing_is_raised(data: bytes) -> None:
    """Any bytes are either a value or unreadable with a place within them."""
    value = decode(data)
    if isinstance(value, Unreadable):
        assert 0 <= value.at <= len(data)
    else:
        assert value == json.loads(data.decode(), parse_float=fraction, parse_int=whole)


@pytest.mark.parametrize(
    ("data", "reason", "at"),
    [
        (b"", "empty", 0),
        (b" \r\n\t", "empty", 0),
        (b'{"a":1', "not-json", 6),
        (b'{"\xc3\xa9":x}', "not-json", 6),
        (b"\xef\xbb\xbf{}", "not-json", 0),
        (b"{} {}", "not-json", 3),
        (b"[NaN]", "not-json", 0),
        (b"[-Infinity]", "not-json", 0),
        (b'"a\nb"', "not-json", 2),
        (b'"\xff"', "invalid-utf8", 1),
        (b'"\xed\xa0\xbd"', "invalid-utf8", 1),
        (b'{"a":1,"b":{"c":1,"c":2}}', "duplicate-key", 18),
        (b'{"a":1,"\\u0061":2}', "duplicate-key", 7),
        (b'["\\ud83c"]', "lone-surrogate", 2),
        (b'["\\ud83c\\udf27\\udf27"]', "lone-surrogate", 14),
        (b'{"\\ud83c":1}', "lone-surrogate", 2),
        (b"[" * 129 + b"]" * 129, "too-deep", 0),
        (b'{"a":' * 100_000, "too-deep", 0),
    ],
)
def test_a_text_that_has_no_sure_meaning_is_unreadable(data: bytes, reason: str, at: int) -> None:
    """Each way in which a text fails has its name and its place."""
    value = decode(data)
    assert isinstance(value, Unreadable)
    assert (value.reason, value.at) == (reason, at)


def test_escapes_that_only_look_like_surrogates_are_text() -> None:
    """An escaped backslash before `ud83c` is no surrogate; whole pairs are characters."""
    assert decode(b'"\\\\ud83c"') == "\\ud83c"
    assert decode(b'"\\ud83c\\udf27"') == "🌧"


def test_a_hostile_text_costs_its_bytes() -> None:
    """Escapes in a string without end, deep brackets and huge numbers are read in one pass."""
    assert not too_deep(b"[" * 128 + b'"' + b'\\"' * 500_000)
    assert isinstance(decode(b"[" * 129 + b'"' + b'\\"' * 500_000), Unreadable)
    assert isinstance(decode(b"[" + b"1e400," * 100_000), Unreadable)


def test_depth_counts_brackets_outside_strings_only() -> None:
    """The limit is on nesting; brackets in texts and beside each other are none."""
    assert not too_deep(b"[" * JSON_DEPTH + b"]" * JSON_DEPTH)
    assert not too_deep(b'"' + b"[" * 500 + b'"')
    assert not too_deep(b"[" + b"[]," * 500 + b"[]]")
    assert too_deep(b'{"a":' * 129)


@pytest.mark.parametrize(
    ("text", "integral"),
    [
        ("0", True), ("-0.0", True), ("12.0", True), ("1e3", True), ("1.5", False),
        ("1.50e1", True),
        ("15e-1", False), ("150e-1", True), ("0e-999999999999999999999", True), ("1e400", True),
        ("1e-0000000000000000000", True), ("15e+0000000000000000000", True),
        ("90071992547409905e-0000000000000000000001", False), ("9007199254740991.5", False),
        ("1e-400", False), ("1e99999999999999999999", True),
        ("1e-99999999999999999999", False), ("0.000e5", True), ("x", False),
    ],
)  # fmt: skip
def test_integers_are_told_by_arithmetic_not_by_floats(text: str, *, integral: bool) -> None:
    """A number is an integer if it is one mathematically, beyond what a double can hold too."""
    assert is_integral(text) == integral
    if text != "x":
        value: Any = decode(text.encode())
        assert (isinstance(value, int) or value.is_integer()) == integral


def test_numbers_beyond_every_limit_keep_their_sign_and_kind() -> None:
    """What no double holds is read as something huge, so that limits still refuse it."""
    huge: list[Any] = [decode(b"1" * 5000), decode(b"-" + b"1" * 5000), decode(b"-1e400")]
    assert [value > 10**20 for value in huge] == [True, False, False]
    assert [value < -(10**20) for value in huge] == [False, True, True]
    assert decode(b"-9007199254740991.5") == -0.5
    assert strict_json.decode(b"0.25") == 0.25
