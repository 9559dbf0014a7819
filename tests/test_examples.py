"""The examples that the docs show beside the schema conform, and say what they should."""

import json
from pathlib import Path

import jsonschema

from cheapgpu.core.request import ChatRequest, decode_request
from cheapgpu.core.schema import SCHEMA
from cheapgpu.core.verify import judge
from tests.core.exchanges import bare, exchange, whole

EXAMPLES = Path("examples")


def _bytes(name: str) -> bytes:
    return (EXAMPLES / name).read_bytes()


def test_the_request_is_the_profile_s() -> None:
    """The request example is the profile's own, and is within the profile."""
    text = Path("docs/profile.md").read_text()
    shown = text[text.index("{\n") : text.index("}\n\nmodel is") + 1]
    assert json.loads(shown) == json.loads(_bytes("request.json"))
    assert isinstance(decode_request(_bytes("request.json")), ChatRequest)


def test_the_answers_conform() -> None:
    """Completion and stream are complete answers to requests for the example's model."""
    request = json.loads(_bytes("request.json"))
    plain = {k: v for k, v in request.items() if k != "stream_options"} | {"stream": False}
    assert judge(whole(_bytes("completion.json"), sent=json.dumps(plain).encode())).broken == []
    made = exchange(_bytes("stream.sse"), sent=_bytes("request.json"))
    assert (judge(made).outcome, judge(made).broken) == ("complete", [])
    assert judge(bare(_bytes("error.json"))).broken == []


def test_each_chunk_of_the_stream_matches_the_chunk_schema() -> None:
    """JSON Schema alone, without our code, accepts every chunk and document."""

    def validator(name: str) -> jsonschema.Draft202012Validator:
        return jsonschema.Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{name}"})

    events = _bytes("stream.sse").decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    for event in events[:-2]:
        validator("chunk").validate(json.loads(event.removeprefix("data: ")))
    validator("completion").validate(json.loads(_bytes("completion.json")))
    validator("error").validate(json.loads(_bytes("error.json")))
