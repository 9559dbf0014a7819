"""The fast decoders accept exactly what the published schema accepts: three judges agree."""

import json
from typing import Any, get_args

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheapgpu.core import schema, strict_json
from cheapgpu.core.messages import (
    chunk_of,
    completion_of,
    decode_chunk,
    decode_completion,
    decode_error,
    decode_usage,
    fast_value,
)
from cheapgpu.core.request import ChatRequest, decode_request
from tests.core.documents import EDGES, VALID, texts

DECODERS: dict[str, Any] = {
    "chunk": decode_chunk,
    "completion": decode_completion,
    "error": decode_error,
    "usage": decode_usage,
    "request": lambda data: (
        request if isinstance(request := decode_request(data), ChatRequest) else None
    ),
}
SCHEMA = json.loads(schema.SCHEMA_BYTES)


def oracle(kind: str) -> dict[str, Any]:
    """The schema of one document, resolved from the published file and nothing of ours."""
    return {"$schema": SCHEMA["$schema"], "$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]}


PYTHON = {kind: jsonschema.Draft202012Validator(oracle(kind)) for kind in DECODERS}
RUST = {kind: jsonschema_rs.validator_for(oracle(kind)) for kind in DECODERS}


def check(kind: str, text: bytes) -> bool:
    """Ask all judges about one text; they must agree."""
    value = json.loads(text)
    accepted = DECODERS[kind](text) is not None
    assert accepted == PYTHON[kind].is_valid(value), (kind, text)
    assert accepted == RUST[kind].is_valid(value), (kind, text)
    if kind != "request":
        assert accepted == (not schema.faults(kind, value)), (kind, text)  # type: ignore[arg-type]
    return accepted


@pytest.mark.parametrize("kind", DECODERS)
@given(st.data())
def test_the_decoders_agree_with_the_schema(kind: str, data: st.DataObject) -> None:
    """On documents near the schema, ours, jsonschema-rs and python-jsonschema say the same."""
    check(kind, data.draw(texts(kind)))


@pytest.mark.parametrize("kind", DECODERS)
def test_every_member_at_every_edge_is_judged_as_the_schema_does(kind: str) -> None:
    """Each member of each valid document, replaced by each edge value or removed."""
    verdicts = set()
    for document in VALID[kind]:
        assert check(kind, json.dumps(document).encode())
        for path in _paths(document):
            for value in [*EDGES, ...]:
                changed = _replaced(document, path, value)
                for separators in ((",", ":"), (", ", ": ")):
                    text = json.dumps(changed, separators=separators).encode()
                    verdicts.add(check(kind, text))
    assert verdicts == {True, False}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [p for key, v in items for p in ((*path, key), *_paths(v, (*path, key)))]


def _replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    target = copy
    for step in path[:-1]:
        target = target[step]
    if value is ...:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return copy


@pytest.mark.parametrize("kind", get_args(schema.Document))
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nonsense",
        b'{"x":NaN}',
        b'{"x":1,"x":1}',
        b'{"x":"\xff"}',
        b'{"x":"\\ud83c"}',
        b"[" * 200 + b"]" * 200,
    ],
)
def test_what_is_not_strict_json_is_no_document(kind: str, text: bytes) -> None:
    """A text that two readers could read differently is refused before any schema."""
    assert DECODERS[kind](text) is None


def test_duplicate_names_are_found_at_every_level() -> None:
    """A name that occurs twice hides nowhere, spaced or not, however the values compare."""
    chunk = json.dumps(VALID["chunk"][0], separators=(",", ":")).encode()
    for member in (b'"id":"c"', b'"index":0', b'"content":"Rain"', b'"usage":null'):
        for again in (member, b" " + member, member.replace(b":", b" : ")):
            assert decode_chunk(chunk.replace(member, member + b"," + again)) is None
    assert decode_chunk(chunk) is not None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": "b:c", "d": {"e": 1}}', {"a": "b:c", "d": {"e": 1}}),
        (b'{"a":"\xc3\xa9"}', {"a": "é"}),
        (b'{"a":[1,{"b":2}]}', {"a": [1, {"b": 2}]}),
        (b"7", 7),
    ],
)
def test_a_value_is_read_quickly_where_nothing_can_hide(text: bytes, value: Any) -> None:
    """Compact texts are proved by encoding them back, others by counting their colons."""
    assert fast_value(text) == value
    assert strict_json.decode(text) == value


@pytest.mark.parametrize("colon", [b"\\u003a", b"\\u003A"])
def test_a_spelled_colon_makes_no_room_for_a_name(colon: bytes) -> None:
    """A colon that is written as an escape could stand for one that a hidden member has."""
    text = b'{"a": "x%b"}' % colon
    assert (fast_value(text), strict_json.decode(text)) == (None, {"a": "x:"})
    assert fast_value(b'{"a": 1, "a": "x%b"}' % colon) is None


def test_integers_written_with_a_point_are_integers() -> None:
    """JSON Schema's integers have no fraction, however they are written; types follow."""
    chunk = json.dumps(VALID["chunk"][2]).replace('"created": 1', '"created": 1.0').encode()
    decoded = decode_chunk(chunk)
    assert decoded is not None
    assert (decoded.created, type(decoded.created)) == (1, int)
    value: Any = strict_json.decode(chunk)
    assert chunk_of(value) == decoded
    assert completion_of(VALID["completion"][0]).usage.adds_up
