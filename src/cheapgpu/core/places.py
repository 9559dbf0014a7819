"""Finds where in a JSON text a member stands, so that a finding can point at bytes.

Used only once something is wrong: a plain scanner that follows one pointer and passes over the
rest, linear in the bytes, with nothing kept of them.
"""

import json
import re

_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"(?:[^"\\]|\\.?)*+"?', re.DOTALL)
_SCALAR = re.compile(rb"[^ \t\r\n,\]}]++")
#: What opens or closes a container, or is a string, in which brackets do not count.
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.?)*+"?|[\[\]{}]', re.DOTALL)
#: A longer text is not searched: its place is the whole.
_SEARCHED_BYTES = 4 << 20

#: Start and end of a value in a text, in bytes.
Span = tuple[int, int]


def token(name: str | int) -> str:
    """One reference token of a JSON pointer, escaped (RFC 6901 section 3)."""
    return str(name).replace("~", "~0").replace("/", "~1")


def place(data: bytes, pointer: str) -> Span:
    """Return where the value at `pointer` (RFC 6901) stands in a valid JSON text.

    A member that is missing belongs before the closing bracket of what should hold it: the place is
    that bracket, of the nearest value that there is.
    """
    if len(data) > _SEARCHED_BYTES:
        return 0, len(data)
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    at = _space(data, 0)
    for step in steps:
        found = _member(data, at, step)
        if found is None:
            end = _skip(data, at)
            return max(at, end - 1), end
        at = found
    return at, _skip(data, at)


def duplicate_name(data: bytes) -> Span | None:
    """Return where the first name stands that occurs a second time in its object, if one does."""
    objects: list[set[str]] = []
    for match in _STRUCTURE.finditer(data):
        text = match[0]
        if text in (b"{", b"["):
            objects.append(set())
        elif text in (b"}", b"]"):
            objects = objects[:-1]
        elif objects and data[(after := _space(data, match.end())) : after + 1] == b":":
            name = _name(text)
            if name in objects[-1]:
                return match.span()
            objects[-1].add(name)
    return None


def _space(data: bytes, at: int) -> int:
    match = _SPACE.match(data, at)
    return match.end() if match else at


def _skip(data: bytes, at: int) -> int:
    """The end of the value that begins at `at`."""
    opening = data[at : at + 1]
    if opening not in (b"{", b"["):
        match = (_STRING if opening == b'"' else _SCALAR).match(data, at)
        return match.end() if match else len(data)
    depth = 0
    for match in _STRUCTURE.finditer(data, at):
        if match[0] in (b"{", b"["):
            depth += 1
        elif match[0] in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return match.end()
    return len(data)


def _member(data: bytes, at: int, step: str) -> int | None:
    """Where the member or item `step` of the value at `at` begins; the last of equal names."""
    opening = data[at : at + 1]
    if opening not in (b"{", b"["):
        return None
    found, index = None, 0
    at = _space(data, at + 1)
    while at < len(data) and data[at : at + 1] not in (b"}", b"]"):
        name = str(index)
        if opening == b"{":
            match = _STRING.match(data, at)
            if match is None:
                return found
            name = _name(match[0])
            at = _space(data, _space(data, match.end()) + 1)
        if name == step:
            found = at
            if opening == b"[":
                return found
        at = _space(data, _skip(data, at))
        if data[at : at + 1] == b",":
            at = _space(data, at + 1)
        index += 1
    return found


def _name(quoted: bytes) -> str:
    """The name that a quoted text spells: escapes count, since two spellings are one name."""
    text = quoted.decode("utf-8", "replace")
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]
