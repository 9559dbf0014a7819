"""The right endpoint: what it admits, and what it answers."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from cheapgpu.core import examples
from cheapgpu.core.messages import decode_completion, decode_error
from cheapgpu.simulate.answer import Answer, rendered
from cheapgpu.simulate.asked import Asked, Message, credential_of
from cheapgpu.simulate.endpoint import (
    HEARTBEAT_SECONDS,
    Endpoint,
    SimulateError,
    respond,
    understood,
)
from cheapgpu.simulate.faults import BY_NAME, FAULTS, chosen, matching
from tests.simulate.asking import KEY, RIGHT, STREAM, on_paper


def message(**fields: Any) -> Message:
    """A right request, with fields replaced."""
    given: dict[str, Any] = {
        "method": "POST",
        "path": "/v1/chat/completions",
        "content_type": "application/json",
        "authorization": f"Bearer {KEY}",
        "body": examples.WHOLE_REQUEST,
        **fields,
    }
    return Message(**given)


def answered(endpoint: Endpoint = RIGHT, **fields: Any) -> tuple[int, bytes]:
    """Status and body of an answer, as they stand on the wire."""
    request = understood(endpoint, message(**fields), number=1)
    wire = rendered(request) if isinstance(request, Answer) else respond(endpoint, request)[0]
    head, _, body = b"".join(piece.data for piece in wire.pieces).partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def test_answer_is_the_same_byte_for_byte() -> None:
    """Two endpoints that are asked the same give the same bytes."""
    assert answered() == answered(replace(RIGHT))
    assert decode_completion(answered()[1]) is not None


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"authorization": None}, 401, None),
        ({"authorization": "Bearer wrong"}, 401, None),
        ({"authorization": "Bearer"}, 401, None),
        ({"authorization": f"Basic {KEY}"}, 401, None),
        ({"content_type": "text/plain"}, 400, None),
        ({"body": b"{"}, 400, None),
        ({"body": examples.request(temperature=0)}, 400, "temperature"),
        ({"body": examples.request(model="other")}, 404, "model"),
        ({"body": examples.request(max_completion_tokens=4097)}, 400, "max_completion_tokens"),
        ({"path": "/"}, 404, None),
        ({"method": "GET"}, 405, None),
        ({"method": "GET", "path": "/v1/models", "authorization": None}, 401, None),
    ],
)
def test_refusal_names_the_field(fields: dict[str, Any], status: int, param: str | None) -> None:
    """A refusal has the error schema, and the member at fault where there is one."""
    code, body = answered(**fields)
    assert code == status
    refusal = decode_error(body)
    assert refusal is not None
    assert refusal.error.param == param


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_scheme_of_a_key_has_no_case(scheme: str) -> None:
    """RFC 9110 section 11.1: schemes are compared without regard to case; keys are not."""
    assert credential_of(f"{scheme} {KEY}", KEY) == "valid"
    assert credential_of(f"{scheme} {KEY.upper()}", KEY) == "wrong"


def test_model_list_names_the_model() -> None:
    """Who has the key sees what can be asked; a HEAD announces its length and has no body."""
    status, body = answered(method="GET", path="/v1/models")
    assert status == 200
    assert [one["id"] for one in json.loads(body)["data"]] == [RIGHT.model]
    assert answered(method="HEAD", path="/v1/models") == (200, b"")


def test_long_wait_is_filled_with_comments() -> None:
    """At 25 s a token no silence lasts longer than 10 s."""
    made = on_paper(replace(RIGHT, pace=25.0), STREAM)
    times = [0.0, *(read.t for read in made.reads)]
    assert max(b - a for a, b in pairwise(times)) <= HEARTBEAT_SECONDS
    assert made.body.count(b": waiting\n\n") == 2 * 32


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"key": ""}, "key:"),
        ({"key": "a b"}, "key:"),
        ({"model": ""}, "model:"),
        ({"model": "m" * 257}, "model:"),
        ({"pace": -1.0}, "pace: is -1000 ms"),
        ({"pace": float("nan")}, "pace:"),
        ({"ceiling": 0}, "ceiling: is 0"),
    ],
)
def test_endpoint_that_makes_no_sense_is_refused(fields: dict[str, Any], named: str) -> None:
    """The message names the field; a key is never repeated."""
    with pytest.raises(SimulateError, match=named):
        replace(RIGHT, **fields)


def test_every_fault_leaves_any_request_answered() -> None:
    """Whatever is asked, a fault makes an answer of it: none fails on short or odd requests."""
    bodies = [
        examples.request(max_completion_tokens=1),
        examples.request(max_completion_tokens=1, stream=False, stream_options=...),
        examples.request(messages=[{"role": "user", "content": ""}]),
        b'{"model":1,"messages":[1,{"content":2}],"max_completion_tokens":true}',
        b"[]",
        b"[" * 100_000,
        b"\xff",
    ]
    before = understood(RIGHT, message(), number=1)
    assert isinstance(before, Asked)
    for fault in FAULTS:
        endpoint = replace(RIGHT, faults=(fault,))
        for body in bodies:
            request = understood(endpoint, message(body=body), number=2, before=before)
            assert isinstance(request, Asked)
            wire, _ = respond(endpoint, request)
            assert wire.pieces or wire.ending == "hang"


def test_faults_are_found_by_name_and_pattern() -> None:
    """Names keep their order, once each; patterns the gallery's."""
    names = ["timing/stall", "auth/wrong-refused"]
    assert [fault.name for fault in chosen([*names, *names])] == names
    assert [fault.name for fault in matching(["timing/*"])] == [
        name for name in BY_NAME if name.startswith("timing/")
    ]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("stream/usage-twice", "did you mean .*stream/usage-once"),
        ("stall", "did you mean timing/stall"),
        ("nothing like it", "--list shows them all"),
    ],
)
def test_unknown_fault_is_refused_with_the_nearest(name: str, hint: str) -> None:
    """A slip of the pen is shown what was perhaps meant."""
    with pytest.raises(SimulateError, match=hint):
        chosen([name])
    with pytest.raises(SimulateError, match=hint):
        matching([name])
