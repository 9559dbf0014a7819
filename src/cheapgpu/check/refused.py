"""The cases that must be refused: keys, and requests that are outside the profile.

Each rule of `refuse/` has the case of its own example, so that what a rule is explained with is
what is asked; some have others beside it, since who sees one form of a fault may miss another.
"""

import re
from dataclasses import replace
from typing import Any, Final

from cheapgpu.check.case import Body, Case, KeyForm, asking, example, limited_to, said
from cheapgpu.core.exchange import Credential
from cheapgpu.core.request import EXCLUDED
from cheapgpu.core.rules import BY_ID, Rule

#: What an endpoint is to make that takes a request which it must refuse.
_ONE_TOKEN: Final = 1
#: What is counted for a request that sets no sure limit: it is left when an answer begins.
_LEFT_TOKENS: Final = 16
#: Rules of limits; a request that breaks one may be taken as one for any number of tokens.
_NO_SURE_LIMIT: Final = "refuse/limit-"
#: Every limit that an endpoint may find in a body; it may take any of them.
_LIMITS: Final = re.compile(rb'"max_(?:completion_)?tokens":(\d+)')

#: The cases after which it is seen whether the endpoint still answers.
_HOSTILE: Final = ("refuse/not-json", "refuse/empty-body", "refuse/not-an-object")

_HELLO: Final = said("Hello.")


def refusal(name: str, rule: str, body: Body | None = None, purpose: str = "") -> Case:
    """The case of a request that must be refused by `rule`: of its example, or with this body."""
    subject = BY_ID[rule]
    made = body or example(subject.request)
    limits = [int(limit) for limit in _LIMITS.findall(made("m", _ONE_TOKEN))]
    unlimited = rule.startswith(_NO_SURE_LIMIT)
    return Case(
        name=name,
        purpose=purpose or subject.sentence,
        body=lambda model, _: made(model, _ONE_TOKEN),
        tokens=_LEFT_TOKENS if unlimited else max(limits, default=_ONE_TOKEN),
        adjustable=False,
        refused_by=rule,
        credential=subject.credential,
        model=subject.model,
        stream=b'"stream":false' not in made("m", _ONE_TOKEN),
        content_type=subject.content_type,
        feeds=("service/answers-after-fault",) if rule in _HOSTILE else (),
        beside="refusals",
        leave_after=0 if unlimited else None,
    )


def _keyed(
    name: str, purpose: str, credential: Credential, key: KeyForm = "bearer", *, stream: bool
) -> Case:
    rule = "auth/missing-refused" if credential == "none" else "auth/wrong-refused"
    case = refusal(name, rule, asking(_HELLO, stream=stream), purpose)
    return replace(case, credential=credential, key=key)


AUTH: Final = (
    _keyed("no-key", "No key.", "none", stream=False),
    _keyed("no-key-stream", "No key, and a stream is asked for.", "none", stream=True),
    _keyed("wrong-key", "A wrong key, made up for this run.", "wrong", stream=False),
    _keyed("wrong-key-stream", "A wrong key, and a stream is asked for.", "wrong", stream=True),
    _keyed("empty-key", "The scheme alone.", "wrong", "empty", stream=False),
    _keyed("spaces-for-key", "The scheme and spaces.", "wrong", "spaces", stream=False),
    _keyed(
        "key-in-other-case",
        "The key with small letters for capitals and the other way round.",
        "wrong",
        "other-case",
        stream=False,
    ),
    _keyed("basic-key", "A wrong name and password (Basic).", "wrong", "basic", stream=False),
    _keyed("key-under-other-scheme", "The key as Token.", "wrong", "token", stream=False),
)

UNKNOWN_MODEL: Final = (
    # An unknown model has another id in each run; the example has one of its own.
    refusal("unknown-model", "refuse/unknown-model", asking(said("Describe how rain forms."))),
    refusal(
        "unknown-model-whole", "refuse/unknown-model", asking(_HELLO, stream=False), "Not streamed."
    ),
)


def _members(**members: Any) -> Body:  # noqa: ANN401 -- JSON is any value
    return asking(_HELLO, **members)


def _message(**members: Any) -> Body:  # noqa: ANN401 -- JSON is any value
    return asking([members])


def _text(text: bytes) -> Body:
    return lambda _model, _tokens: text


def _ended(end: bytes) -> Body:
    """A conforming body with its last brace replaced."""
    return lambda model, tokens: asking(_HELLO)(model, tokens)[:-1] + end


_HI: Final = {"type": "text", "text": "Hello."}
_PICTURE: Final = {
    "type": "image_url",
    "image_url": {"url": "data:image/gif;base64,R0lGODlhAQABAAAA"},
}

#: Other forms of a fault: rule → the name of each case, what it sends, and its body.
_FORMS: Final[dict[str, tuple[tuple[str, str, Body], ...]]] = {
    "unknown-field": (
        ("with-top_k", "A sampling control of some engines.", _members(top_k=40)),
        ("unknown-field-null", "An unknown member that is null.", _members(x_unknown_field=None)),
    ),
    "model-missing": (
        ("model-null", "A model id of null.", _members(model=None)),
        ("model-number", "A model id that is a number.", _members(model=1)),
    ),
    "messages-missing": (
        ("messages-null", "Messages that are null.", _members(messages=None)),
        ("messages-string", "Messages that are a text.", _members(messages="Hello.")),
    ),
    "role-missing": (
        ("message-string", "A message that is a text.", _members(messages=["Hello."])),
    ),
    "role-unknown": (
        ("role-function", 'The role "function".', _message(role="function", content="1")),
        ("role-capital", 'The role "User".', _message(role="User", content="Hello.")),
        ("role-number", "A role that is a number.", _message(role=1, content="Hello.")),
    ),
    "content-parts": (
        ("content-picture", "A picture.", _message(role="user", content=[_HI, _PICTURE])),
        ("content-number", "Content that is a number.", _message(role="user", content=1)),
        ("content-object", "Content that is an object.", _message(role="user", content=_HI)),
    ),
    "message-extra-field": (
        (
            "message-tool_calls",
            "A message with tool_calls.",
            _message(role="assistant", content="Hello.", tool_calls=[]),
        ),
    ),
    "limit-string": (("limit-array", "A limit in an array.", _members(max_completion_tokens=[4])),),
    "limit-boolean": (("limit-false", "A limit of false.", _members(max_completion_tokens=False)),),
    "limit-unsafe": (("limit-huge", "A limit written 1e29.", limited_to("1e29", _members())),),
    "stream-string": (("stream-number", "A stream of 1.", _members(stream=1)),),
    "usage-not-requested": (
        ("options-null", "stream_options of null.", _members(stream_options=None)),
    ),
    "usage-false": (
        ("usage-null", "include_usage of null.", _members(stream_options={"include_usage": None})),
        (
            "usage-string",
            'include_usage of "true".',
            _members(stream_options={"include_usage": "true"}),
        ),
    ),
    "options-without-stream": (
        (
            "options-null-whole",
            "A plain request with stream_options of null.",
            asking(_HELLO, stream=False, stream_options=None),
        ),
    ),
    "not-json": (
        ("json-cut", "Half a body.", lambda m, n: asking(_HELLO)(m, n)[:40]),
        ("json-comma", "A comma before the last brace.", _ended(b",}")),
        ("json-followed", "A body with text behind it.", _ended(b"} and more")),
        ("json-not-a-number", "A member of NaN.", _ended(b',"x":NaN}')),
    ),
    "empty-body": (("blank-body", "A body of spaces.", _text(b"  \n")),),
    "not-an-object": (
        ("body-null", "A body of null.", _text(b"null")),
        ("body-string", "A body that is a text.", _text(b'"Hello."')),
    ),
    "duplicate-key": (
        (
            "duplicate-role",
            "A message with two roles.",
            lambda m, n: asking(_HELLO)(m, n).replace(b'{"role"', b'{"role":"system","role"'),
        ),
    ),
}


def _names(rule: Rule) -> str:
    name = rule.id.partition("/")[2]
    return f"with-{name}" if name in EXCLUDED else name


def _of(rule: Rule) -> tuple[Case, ...]:
    """The cases of a rule of `refuse/`: its example, and other forms of the same fault."""
    forms = _FORMS.get(rule.id.partition("/")[2], ())
    return (
        refusal(_names(rule), rule.id),
        *(refusal(name, rule.id, body, purpose) for name, purpose, body in forms),
    )


def _undeclared(name: str, purpose: str, content_type: str) -> Case:
    case = refusal(name, "refuse/content-type", _members(), purpose)
    return replace(case, content_type=content_type)


#: Rules that call for what no body says by itself.
_APART: Final = ("refuse/unknown-model", "refuse/limit-over-ceiling")

OUTSIDE: Final = (
    *(
        case
        for rule in BY_ID.values()
        if rule.area == "refuse" and rule.id not in _APART
        for case in _of(rule)
    ),
    _undeclared("content-type-none", "No content type.", ""),
    _undeclared(
        "content-type-form", "A body declared as a form.", "application/x-www-form-urlencoded"
    ),
)

REFUSED: Final = (*AUTH, *UNKNOWN_MODEL, *OUTSIDE)


def over_ceiling(ceiling: int) -> Case:
    """The case of a limit one above the largest that the endpoint admits (tokens)."""
    body = limited_to(str(ceiling + 1), asking(_HELLO))
    return refusal("limit-over-ceiling", "refuse/limit-over-ceiling", body)
