"""`auth/`, `refuse/` and `accepted/`: who is let in, and what may be asked.

Profile, "Request", paragraph 4:

    The request schema rejects other fields, including max_tokens, tools, response_format, sampling
    controls, multimodal content, and stored conversation references. […] An endpoint must return
    400 or 422 for a request outside this subset rather than silently ignoring its unsupported
    parameters. Unknown model IDs return 400 or 404 without falling back to another model. Missing
    or invalid authentication returns 401 or 403 before inference starts.
"""

from typing import Any, Final

from cheapgpu.core.catalogue.rule import Rule
from cheapgpu.core.examples import (
    MODEL,
    STREAM,
    WHOLE,
    WHOLE_REQUEST,
    at_once,
    error,
    request,
    response,
)
from cheapgpu.core.exchange import Credential, ModelKnown
from cheapgpu.core.request import EXCLUDED

_PARAGRAPH: Final = "profile § Request ¶4"
_FIELDS: Final = "profile § Request ¶3"

_OPEN_DOOR: Final = "An endpoint that answers without a valid key works for strangers, unpaid."


def _auth(name: str, sentence: str, why: str, credential: Credential, bad: bytes) -> Rule:
    return Rule(
        id=f"auth/{name}",
        sentence=sentence,
        why=why,
        citation=_PARAGRAPH,
        judge="refusals.judge_admission",
        request=WHOLE_REQUEST,
        credential=credential,
        good=at_once(error(401, "a valid key is needed")),
        bad=at_once(bad),
    )


AUTH: Final = (
    _auth(
        "missing-refused",
        "A request without a bearer key is refused with 401 or 403.",
        _OPEN_DOOR,
        "none",
        WHOLE,
    ),
    _auth(
        "wrong-refused",
        "A request with a wrong key, an empty one or another scheme gets 401 or 403.",
        _OPEN_DOOR,
        "wrong",
        WHOLE,
    ),
    _auth(
        "refused-before-inference",
        "The refusal carries no completion, no chunk and no usage.",
        "Work that is done for a wrong key is work that nobody pays for.",
        "wrong",
        response(
            b'{"error":{"message":"a valid key is needed","type":"auth",'
            b'"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}}}',
            status=401,
        ),
    ),
)


def _excluded(name: str, value: Any) -> Rule:  # noqa: ANN401 -- JSON is any value
    return Rule(
        id=f"refuse/{name}",
        sentence=f"A request with {name} is refused with 400 or 422.",
        why=(
            "A parameter that is ignored gives an answer to another question than the buyer asked;"
            f" what to do instead: {EXCLUDED[name]}."
        ),
        citation=_PARAGRAPH,
        judge="request.decode_request",
        request=request(**{name: value}),
        good=at_once(error()),
        bad=at_once(STREAM),
    )


def _refused(  # noqa: PLR0913 -- the fields of a rule
    name: str,
    sentence: str,
    body: bytes,
    why: str,
    *,
    citation: str = _FIELDS,
    judge: str = "request.decode_request",
    content_type: str = "application/json",
    model: ModelKnown = "known",
    ceiling: int | None = None,
    bad: bytes = STREAM,
) -> Rule:
    return Rule(
        id=f"refuse/{name}",
        sentence=sentence,
        why=why,
        citation=citation,
        judge=judge,
        request=body,
        content_type=content_type,
        model=model,
        ceiling=ceiling,
        good=at_once(error()),
        bad=at_once(bad),
    )


def _message(**members: Any) -> bytes:  # noqa: ANN401 -- JSON is any value
    return request(messages=[members])


_TOOL: Final = {"type": "function", "function": {"name": "f", "parameters": {}}}
_SAMPLES: Final[dict[str, Any]] = {
    "max_tokens": 64,
    "tools": [_TOOL],
    "tool_choice": "none",
    "functions": [_TOOL["function"]],
    "function_call": "none",
    "parallel_tool_calls": False,
    "response_format": {"type": "json_object"},
    "temperature": 0,
    "top_p": 1,
    "n": 1,
    "stop": ["\n"],
    "seed": 1,
    "logprobs": False,
    "top_logprobs": 1,
    "logit_bias": {},
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "user": "u-1",
    "store": False,
    "metadata": {},
    "modalities": ["text"],
    "audio": {"voice": "a", "format": "wav"},
    "prediction": {"type": "content", "content": "Rain"},
    "reasoning_effort": "low",
    "service_tier": "auto",
    "verbosity": "low",
    "previous_response_id": "resp-1",
}

_SUBSET: Final = "What is outside the subset is refused, so that nothing is ignored in silence."
_ROLE: Final = "Three roles are defined; another one would be rendered in a way nobody agreed on."
_TEXT: Final = "Content is text; parts and nulls are rendered differently by every engine."
_LIMIT: Final = "The limit bounds what the buyer can be charged; it must be one sure number."
_STREAM: Final = "How the answer comes, and that usage comes with it, is agreed beforehand."
_JSON: Final = "Two readers must not see two requests in the same bytes."
#: As long as the usual id, so that the announced length of an answer stays right.
_UNKNOWN: Final = "example-unknown-one"
_ONE: Final = request()[:-1]

REFUSE: Final = (
    _refused(
        "unknown-field",
        "A request with a member that the profile does not know is refused with 400 or 422.",
        request(x_unknown_field=1),
        _SUBSET,
        citation=_PARAGRAPH,
    ),
    *(_excluded(name, value) for name, value in _SAMPLES.items()),
    _refused(
        "model-missing", "A request without a model id is refused.", request(model=...), _SUBSET
    ),
    _refused(
        "model-empty", "A request with an empty model id is refused.", request(model=""), _SUBSET
    ),
    _refused(
        "model-too-long",
        "A request with a model id of over 256 characters is refused.",
        request(model="m" * 257),
        _SUBSET,
    ),
    _refused(
        "unknown-model",
        "A request for an unknown model gets 400 or 404, and no other model answers.",
        request(model=_UNKNOWN),
        "A buyer who gets another model than the one asked for pays for something else.",
        citation=_PARAGRAPH,
        judge="refusals.judge_admission",
        model="unknown",
        bad=STREAM.replace(MODEL.encode(), _UNKNOWN.encode()),
    ),
    _refused(
        "messages-missing", "A request without messages is refused.", request(messages=...), _SUBSET
    ),
    _refused(
        "messages-empty", "A request with no message is refused.", request(messages=[]), _SUBSET
    ),
    _refused(
        "role-tool",
        'A message of role "tool" is refused.',
        _message(role="tool", content="1"),
        _ROLE,
    ),
    _refused(
        "role-developer",
        'A message of role "developer" is refused.',
        _message(role="developer", content="Be brief."),
        _ROLE,
    ),
    _refused(
        "role-unknown",
        "A message of a role that the profile does not define is refused.",
        _message(role="wizard", content="Hi"),
        _ROLE,
    ),
    _refused("role-missing", "A message without a role is refused.", _message(content="Hi"), _ROLE),
    _refused(
        "content-parts",
        "A message whose content is parts, or anything but a string, is refused.",
        _message(role="user", content=[{"type": "text", "text": "Hi"}]),
        _TEXT,
    ),
    _refused(
        "content-null",
        "A message whose content is null is refused.",
        _message(role="user", content=None),
        _TEXT,
    ),
    _refused(
        "content-missing", "A message without content is refused.", _message(role="user"), _TEXT
    ),
    _refused(
        "message-extra-field",
        "A message with a member other than role and content is refused.",
        _message(role="user", content="Hi", name="ann"),
        _SUBSET,
    ),
    *(
        _refused(f"limit-{name}", sentence, request(max_completion_tokens=value), _LIMIT)
        for name, sentence, value in (
            ("missing", "A request without max_completion_tokens is refused.", ...),
            ("zero", "A limit of 0 is refused.", 0),
            ("negative", "A negative limit is refused.", -1),
            ("string", "A limit that is text, or anything but a number, is refused.", "64"),
            ("fraction", "A limit with a fraction is refused.", 1.5),
            ("boolean", "A limit of true or false is refused.", True),
            ("null", "A limit of null is refused.", None),
            ("unsafe", "A limit over 2^53-1 is refused.", 2**53),
        )
    ),
    _refused(
        "limit-over-ceiling",
        "A limit over the endpoint's output ceiling is refused.",
        request(max_completion_tokens=4097),
        "A limit that is cut in silence gives an answer that the buyer takes for whole.",
        judge="expectation.expectation",
        ceiling=4096,
    ),
    _refused(
        "stream-missing", "A request without stream is refused.", request(stream=...), _STREAM
    ),
    _refused(
        "stream-string",
        "A stream that is text, or no boolean, is refused.",
        request(stream="true"),
        _STREAM,
    ),
    _refused("stream-null", "A stream of null is refused.", request(stream=None), _STREAM),
    _refused(
        "usage-not-requested",
        "A streamed request without stream_options is refused.",
        request(stream_options=...),
        _STREAM,
    ),
    _refused(
        "usage-false",
        "A streamed request whose include_usage is not true is refused.",
        request(stream_options={"include_usage": False}),
        _STREAM,
    ),
    _refused(
        "options-without-stream",
        "A plain request with stream_options is refused.",
        request(stream=False),
        _STREAM,
    ),
    _refused(
        "options-empty",
        "A streamed request whose stream_options are empty, or no object, is refused.",
        request(stream_options={}),
        _STREAM,
    ),
    _refused(
        "options-extra-field",
        "A streamed request whose stream_options hold another member is refused.",
        request(stream_options={"include_usage": True, "include_obfuscation": False}),
        _STREAM,
    ),
    _refused("not-json", "A body that is not JSON is refused.", _ONE, _JSON),
    _refused("empty-body", "An empty body is refused.", b"", _JSON),
    _refused(
        "not-an-object", "A body that is JSON but no object is refused.", b"[%b]" % request(), _JSON
    ),
    _refused(
        "duplicate-key",
        "A body in which a name occurs twice in one object is refused.",
        _ONE + b',"max_completion_tokens":4}',
        _JSON,
        citation="profile § Request ¶4 · RFC 8259 § 4",
    ),
    _refused(
        "invalid-utf8",
        "A body that is not UTF-8 is refused.",
        _message(role="user", content="rain?").replace(b"?", b"\xff"),
        _JSON,
        citation="profile § Request ¶4 · RFC 8259 § 8.1",
    ),
    _refused(
        "lone-surrogate",
        "A body with half of a surrogate pair alone is refused.",
        _message(role="user", content="rain?").replace(b"?", b"\\ud83c"),
        _JSON,
        citation="profile § Request ¶4 · RFC 8259 § 8.2",
    ),
    _refused(
        "content-type",
        "A body that is not declared JSON is refused.",
        request(),
        _JSON,
        citation="profile § Request ¶1",
        judge="request.refuse_content_type",
        content_type="text/plain",
    ),
)

_REFUSAL: Final = at_once(error())

ACCEPTED: Final = (
    Rule(
        id="accepted/integers",
        sentence="A limit written 12.0 or 1e1 is an integer, and is accepted.",
        why="JSON Schema counts numbers without a fraction as integers, however they are written.",
        citation="profile § Request ¶3 · JSON Schema 2020-12 § 6.1.1",
        judge="refusals.judge_acceptance",
        request=request().replace(b'tokens":64', b'tokens":1e1'),
        good=at_once(STREAM),
        bad=_REFUSAL,
    ),
    Rule(
        id="accepted/unicode",
        sentence="Any valid text is accepted.",
        why="A buyer's language is not a fault.",
        citation="profile § Request ¶3 · RFC 8259 § 8.1",
        judge="refusals.judge_acceptance",
        request=_message(role="user", content="雨はどう降る? 🌧️ é"),
        good=at_once(STREAM),
        bad=_REFUSAL,
    ),
    Rule(
        id="accepted/roles",
        sentence="The three roles are accepted in any order.",
        why="A conversation may begin and end with any of them.",
        citation="profile § Request ¶3",
        judge="refusals.judge_acceptance",
        request=request(
            messages=[
                {"role": "assistant", "content": "Hi."},
                {"role": "user", "content": "Hi."},
                {"role": "system", "content": "Be brief."},
            ]
        ),
        good=at_once(STREAM),
        bad=_REFUSAL,
    ),
)
