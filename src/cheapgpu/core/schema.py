"""The published JSON Schema of the profile, compiled once; faults as JSON pointers.

The schema file beside this module is the published one, byte for byte.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from typing import Any, Final, Literal

import jsonschema_rs

from cheapgpu.core.limits import FINDINGS_KEPT
from cheapgpu.core.places import token

#: The schema as published.
SCHEMA_BYTES: Final = files(__package__).joinpath("openai-chat-text.schema.json").read_bytes()
SCHEMA: Final[Mapping[str, Any]] = json.loads(SCHEMA_BYTES)

#: The documents that the schema defines.
Document = Literal["request", "completion", "chunk", "usage", "error"]

#: What is wanted, in words, where the schema's own keyword would not help anyone repair it.
_WANTED: Final = {
    ("chunk", "/usage"): '"usage" in every chunk: null until the summary chunk',
    ("chunk", "/choices/0/finish_reason"): (
        '"finish_reason" in every choice: null, then "stop", "length" or "content_filter"'
    ),
    ("chunk", "/choices/0/delta/content"): '"content" as a string, or left out',
    ("chunk", "/choices/0/delta/role"): '"role" as "assistant", or left out',
    ("completion", "/choices/0/message/content"): (
        '"content" as a string; null only where finish_reason is "content_filter"'
    ),
    ("completion", "/choices/0/finish_reason"): (
        '"stop", "length" or "content_filter"; only "content_filter" where content is null'
    ),
    ("error", "/error/code"): '"code" as a string or null',
}
_TEXT_ONLY: Final = "left out or null: the profile is text only"
_SHOWN = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One demand of the schema that a document does not meet."""

    #: JSON pointer (RFC 6901) of the value, or of the member that is missing.
    pointer: str
    #: What is wanted, in words.
    expected: str
    #: What stands there, in words; generated text is never quoted.
    found: str


def is_valid(document: Document, value: object) -> bool:
    """Whether a decoded JSON value matches the schema of `document`."""
    return _validator(document).is_valid(value)


def faults(document: Document, value: object) -> list[Fault]:
    """The demands of the schema of `document` that `value` does not meet, up to a bounded number.

    Empty exactly if it is valid.
    """
    found: list[Fault] = []
    for error in islice(_validator(document).iter_errors(value), FINDINGS_KEPT):
        if error.schema_path[-1] == "anyOf" and error.instance_path == ["usage"]:
            found.extend(_usage_faults(value))
        else:
            found.append(_fault(document, value, error))
    return found


def describe(value: object) -> str:
    """Say what kind of value stands somewhere, without quoting text that a model or buyer wrote."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}" if abs(value) < 10**20 else "a very large number"
        case str():
            return f"a string of {len(value)} characters" if value else "an empty string"
        case list():
            return f"an array of {len(value)}"
        case _:
            return "an object"


def quote(value: object) -> str:
    """Describe a value whose text is a keyword of the protocol, such as a role; quote it."""
    if isinstance(value, str) and 0 < len(value) <= _SHOWN:
        return json.dumps(value)
    return describe(value)


def quoted(name: str) -> str:
    """A name of the protocol (an id, a model), cut where it would fill the page."""
    return f'"{name}"' if len(name) <= 64 else f'"{name[:63]}…"'


@functools.cache
def _validator(document: Document) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        {"$schema": SCHEMA["$schema"], "$ref": f"#/$defs/{document}", "$defs": SCHEMA["$defs"]}
    )


def _usage_faults(value: Any) -> list[Fault]:  # noqa: ANN401 -- JSON
    usage = value["usage"]
    if not isinstance(usage, dict) or not usage:
        wanted = "null, or an object with prompt_tokens, completion_tokens and total_tokens"
        found = "an empty object" if usage == {} else describe(usage)
        return [Fault(pointer="/usage", expected=wanted, found=found)]
    return [
        Fault(pointer=f"/usage{fault.pointer}", expected=fault.expected, found=fault.found)
        for fault in faults("usage", usage)
    ]


def _fault(document: Document, value: object, error: jsonschema_rs.ValidationError) -> Fault:
    path: list[str | int] = list(error.instance_path)
    keyword = error.schema_path[-1]
    subschema: Any = SCHEMA
    for step in error.schema_path[:-1]:
        subschema = subschema[step]
    found = describe(_at(value, path))
    if keyword == "required":
        path.append(str(getattr(error.kind, "property", "")))
        found = "no such member"
    elif keyword in ("enum", "const"):
        found = quote(_at(value, path))
    pointer = "".join(f"/{token(step)}" for step in path)
    name = str(path[-1]) if path else document
    return Fault(
        pointer=pointer,
        expected=_WANTED.get((document, pointer)) or _wanted(name, keyword, subschema),
        found=found,
    )


def _at(value: Any, path: Sequence[str | int]) -> object:  # noqa: ANN401 -- JSON
    for step in path:
        value = value[step]
    return value


def _wanted(name: str, keyword: str | int, subschema: Mapping[str, Any]) -> str:
    """Put one keyword of the schema into words."""
    match keyword:
        case "required":
            return f'a member "{name}"'
        case "enum":
            return " or ".join(json.dumps(choice) for choice in subschema["enum"])
        case "const":
            return json.dumps(subschema["const"])
        case "additionalProperties":
            return "no other members than " + ", ".join(subschema["properties"])
        case "minLength" | "maxLength":
            return f"{subschema.get('minLength', 0)} to {subschema['maxLength']} characters"
        case "minItems" | "maxItems":
            return "exactly one choice" if subschema.get("minItems") else "one choice or none"
    return _wanted_type(keyword, subschema)


def _wanted_type(keyword: str | int, subschema: Mapping[str, Any]) -> str:
    kind = subschema.get("type")
    if kind == "integer" or keyword in ("minimum", "maximum"):
        return f"an integer from {subschema['minimum']} to {subschema['maximum']}"
    if kind is None:
        return "left out"
    if kind == "null":
        return _TEXT_ONLY
    if isinstance(kind, list):
        return " or ".join(kind)
    return f"{'an' if kind in ('array', 'object') else 'a'} {kind}"
