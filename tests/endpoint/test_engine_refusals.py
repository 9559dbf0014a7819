"""An engine's refusal becomes one of the profile's, without the engine's words."""

import json
from typing import Any

import pytest

from cheapgpu.core import schema
from cheapgpu.endpoint.engine_refusals import read_refusal, retry_after
from cheapgpu.endpoint.failures import FAILURES, Failure, Reason

#: As the engines word it (their own documentation and source).
TOO_LONG: list[tuple[int, Any]] = [
    (400, {"error": {"message": "This model's maximum context length is 2048 tokens. However, …"}}),
    (
        400,
        {"error": {"message": "max_completion_tokens=5000 cannot be greater than max_model_len"}},
    ),
    (400, {"error": {"code": 400, "message": "…", "type": "exceed_context_size_error"}}),
    (500, {"error": {"code": 500, "message": "the request exceeds the available context size"}}),
    (400, {"object": "error", "message": "The input is longer than the model's context length."}),
    (
        400,
        {"object": "error", "message": "Input length (9) exceeds the maximum allowed length (8)."},
    ),
    (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4"}),
    (400, {"error": "The number of tokens to keep from the initial prompt is greater than …"}),
    (400, {"error": {"code": "context_length_exceeded"}}),
    (413, "too large"),
]
OTHERS: list[tuple[int, Any, Reason, int]] = [
    (400, {"detail": "no"}, "engine-refused", 400),
    (422, {"detail": [{"msg": "x"}]}, "engine-refused", 400),
    (401, {"error": "Unauthorized"}, "engine-error", 502),
    (403, "", "engine-error", 502),
    (404, {"error": {"message": "no such model"}}, "engine-error", 502),
    (302, "", "engine-error", 502),
    (418, "", "engine-error", 502),
    (429, {"error": "Model is overloaded"}, "engine-busy", 503),
    (503, {"error": {"message": "Loading model"}}, "engine-busy", 503),
    (500, "<html>", "engine-error", 502),
    (504, "", "engine-silent", 504),
    (408, "", "engine-silent", 504),
]


@pytest.mark.parametrize(("status", "body"), TOO_LONG)
def test_a_request_too_long_is_the_buyer_s_to_mend(status: int, body: Any) -> None:
    """Whatever status and words an engine has for it, a buyer gets 400 and what to shorten."""
    failure = read_refusal(status, json.dumps(body).encode())
    assert (failure.reason, failure.status, failure.param) == ("engine-context", 400, "messages")


@pytest.mark.parametrize(("status", "body", "reason", "ours"), OTHERS)
def test_other_refusals_keep_their_meaning(
    status: int, body: Any, reason: Reason, ours: int
) -> None:
    """A bad key or a missing model at the engine is the operator's affair: 502."""
    failure = read_refusal(status, json.dumps(body).encode())
    assert (failure.reason, failure.status) == (reason, ours)


@pytest.mark.parametrize("body", [b"", b"\xff", b"[" * 100_000, b"[]", b"null", b'{"error":[1]}'])
def test_a_refusal_with_any_body_is_read(body: bytes) -> None:
    """A body that is no JSON, or none of an error, says nothing more."""
    assert read_refusal(500, body).reason == "engine-error"


@pytest.mark.parametrize("reason", FAILURES)
def test_every_failure_has_a_body_of_the_error_schema(reason: Reason) -> None:
    """Profile, "Errors": message, type, code, param, and nothing else; nothing seen is quoted."""
    value = json.loads(Failure(reason, "seen: secret").body)
    assert schema.is_valid("error", value)
    assert value["error"]["code"] == reason
    assert "secret" not in json.dumps(value)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(b"7", 7), (b"9999", 600), (None, None), (b"soon", None), (b"-1", None), (b"9" * 99, None)],
)
def test_retry_after_is_a_bounded_number(value: bytes | None, seconds: int | None) -> None:
    """RFC 9110 section 10.2.3, the form with seconds."""
    assert retry_after(value) == seconds
