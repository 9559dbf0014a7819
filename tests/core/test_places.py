"""Where a member stands in a text."""

import json
from typing import Any

from hypothesis import given

from cheapgpu.core.places import duplicate_name, place, token
from tests.core.test_strict_json import JSON_VALUES


def _values(value: Any, pointer: str = "") -> dict[str, Any]:
    found = {pointer: value}
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        found.update(_values(inner, f"{pointer}/{token(key)}"))
    return found


@given(JSON_VALUES)
def test_every_value_stands_where_its_pointer_says(value: Any) -> None:
    """The bytes at a place are the JSON of the value that the pointer names."""
    data = json.dumps(value, indent=1).encode()
    for pointer, inner in _values(value).items():
        start, end = place(data, pointer)
        assert json.loads(data[start:end]) == inner


def test_a_missing_member_is_placed_at_what_should_hold_it() -> None:
    """A pointer that leads nowhere gives the bracket before which the member belongs."""
    data = b' {"a": {"b": 1}}'
    assert place(data, "/a/b") == (13, 14)
    assert place(data, "/a/c") == (14, 15)
    assert place(data, "/x/y") == (15, 16)
    assert place(b"", "/x") == (0, 0)


def test_broken_texts_are_placed_as_far_as_they_go() -> None:
    """The scanner ends on any bytes, and never beyond them."""
    for data in (b'{"a', b'{"a":', b"{a}", b"[1,", b'"x', b"}", b'{"\\x":1,"\\x":2}', b""):
        for pointer in ("", "/a", "/a/b", "/0", "/1"):
            start, end = place(data, pointer)
            assert 0 <= start <= end <= len(data)
    assert place(b"1" * (5 << 20), "/x") == (0, 5 << 20)


def test_a_large_text_is_scanned_once() -> None:
    """Long names above many values, or many items before one, cost their bytes and no more."""
    data = b'{"' + b"A" * 100_000 + b'":[' + b"1," * 100_000 + b"2]}"
    assert data[slice(*place(data, "/" + "A" * 100_000 + "/100000"))] == b"2"


def test_the_second_of_two_equal_names_is_found() -> None:
    """Two spellings of one name are one name; names of different objects are not."""
    assert duplicate_name(b'{"a":{"a":1},"\\u0061":2}') == (13, 21)
    assert duplicate_name(b'[{"a":1},{"a":1}]') is None
    assert duplicate_name(b'{"\\q":1,"\\q":2}') == (8, 12)
