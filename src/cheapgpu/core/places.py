"""Finds where in a JSON text a member stands, so that a finding can point at bytes.

Used only once something is wrong: a plain scanner that trades speed for being short.
"""

import json
import re

_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^ \t\r\n,\]}]++")

#: Start and end of a value in a text, in bytes.
Span = tuple[int, int]


def spans(data: bytes) -> dict[str, Span]:
    """Map the JSON pointer (RFC 6901) of every value in a valid JSON text to where it stands.

    Where a name occurs twice in one object, the later value is the one that is mapped.
    """
    found: dict[str, Span] = {}
    _value(data, _space(data, 0), "", found, [])
    return found


def duplicate_name(data: bytes) -> Span | None:
    """Return where the first name stands that occurs a second time in its object, if one does."""
    again: list[Span] = []
    _value(data, _space(data, 0), "", {}, again)
    return again[0] if again else None


def place(data: bytes, pointer: str) -> Span:
    """Return where the value at `pointer` stands.

    A member that is missing belongs before the closing bracket of what should hold it: the place is
    that bracket, of the nearest value that there is.
    """
    found = spans(data)
    missing = pointer not in found
    while pointer and pointer not in found:
        pointer = pointer.rpartition("/")[0]
    start, end = found.get(pointer, (0, len(data)))
    return (end - 1, end) if missing and end > start else (start, end)


def token(name: str | int) -> str:
    """One reference token of a JSON pointer, escaped (RFC 6901 section 3)."""
    return str(name).replace("~", "~0").replace("/", "~1")


def _space(data: bytes, at: int) -> int:
    match = _SPACE.match(data, at)
    return match.end() if match else at


def _value(data: bytes, at: int, pointer: str, found: dict[str, Span], again: list[Span]) -> int:
    opening = data[at : at + 1]
    if opening in (b"{", b"["):
        end = _container(data, at, pointer, found, again)
    else:
        match = (_STRING if opening == b'"' else _SCALAR).match(data, at)
        end = match.end() if match else len(data)
    found[pointer] = (at, end)
    return end


def _container(
    data: bytes, at: int, pointer: str, found: dict[str, Span], again: list[Span]
) -> int:
    closing = b"}" if data[at : at + 1] == b"{" else b"]"
    at = _space(data, at + 1)
    index = 0
    while at < len(data) and data[at : at + 1] != closing:
        name: str | int = index
        if closing == b"}":
            match = _STRING.match(data, at)
            if match is None:
                return len(data)
            name = _name(match[0])
            if f"{pointer}/{token(name)}" in found:
                again.append(match.span())
            at = _space(data, match.end())
            at = _space(data, at + 1)
        at = _value(data, at, f"{pointer}/{token(name)}", found, again)
        at = _space(data, at)
        if data[at : at + 1] == b",":
            at = _space(data, at + 1)
        index += 1
    return at + 1


def _name(quoted: bytes) -> str:
    """The name that a quoted text spells: escapes count, since two spellings are one name."""
    text = quoted.decode("utf-8", "replace")
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]
