"""Reads JSON as the profile needs it: one text, one meaning, or the place where it fails.

RFC 8259 leaves four doors open through which two readers can see different values in one text; here
they are shut: names within an object are unique (§4), text is UTF-8 (§8.1) without a byte order
mark, escapes spell Unicode text (§8.2), and NaN and Infinity are not numbers (§6).
"""

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from cheapgpu.core.limits import JSON_DEPTH
from cheapgpu.core.places import duplicate_name

#: Why a text could not be read. `too-deep` is our limit, not a fault of the text.
Reason = Literal["empty", "invalid-utf8", "not-json", "duplicate-key", "lone-surrogate", "too-deep"]

#: What json says, in words for someone who sees the bytes.
_WORDS = {
    "Extra data": "something follows the JSON value",
    "Expecting value": "a value is missing here",
    "Expecting ',' delimiter": "a comma or the end is missing here",
    "Expecting ':' delimiter": "a colon is missing here",
    "Expecting property name enclosed in double quotes": "a quoted name is missing here",
    "Unterminated string starting at": "a string that does not end",
    "Invalid control character at": "a control character in a string",
    "Illegal trailing comma before end of object": "a comma before the end",
    "Illegal trailing comma before end of array": "a comma before the end",
}
#: A string, or what is left of one that does not end: no byte is looked at twice.
_STRING = re.compile(rb'"(?:[^"\\]|\\.?)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_PAIR_OR_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)
_NUMBER = re.compile(r"-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
#: Stands for an integer beyond every limit of the profile, so that no number has to be exact there.
_HUGE = 10**21
_HUGE_DIGITS = 21


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A text that is not strict JSON: why, and where (offset in bytes)."""

    reason: Reason
    at: int
    #: One phrase for people; names of members may be in it, values never.
    what: str


class _DuplicateKeyError(ValueError):
    """Two members of one object have the same name."""


def decode(data: bytes) -> Any | Unreadable:  # noqa: ANN401 -- JSON is any value
    """Return the value of a strict JSON text, or why it has none. Never raises.

    Integers stay exact; a number with a fraction is a float that is integral only if the number is
    (`12.0` and `1e3` are integers in JSON Schema; `9007199254740991.5` is not, though the nearest
    float is).
    """
    if not data.strip(b" \t\r\n"):
        return Unreadable("empty", 0, "no JSON text")
    if too_deep(data):
        return Unreadable("too-deep", 0, f"nested deeper than {JSON_DEPTH}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return Unreadable("invalid-utf8", error.start, f"byte 0x{data[error.start]:02x}")
    try:
        value = _DECODER.decode(text)
    except _DuplicateKeyError as error:
        at, _ = duplicate_name(data) or (0, 0)
        return Unreadable("duplicate-key", at, f"the name {str(error)[:64]!a} occurs twice")
    except json.JSONDecodeError as error:
        what = _WORDS.get(error.msg, error.msg.lower())
        return Unreadable("not-json", len(text[: error.pos].encode()), what)
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            at = _lone_surrogate(text)
            return Unreadable("lone-surrogate", at, "half of a surrogate pair alone")
    return value


def too_deep(data: bytes) -> bool:
    """Whether arrays and objects nest deeper than the limit. Linear; cheap for usual texts."""
    if data.count(b"[") + data.count(b"{") <= JSON_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_STRING.sub(b"", data)):
        depth += 1 if bracket in b"[{" else -1
        if depth > JSON_DEPTH:
            return True
    return False


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise _DuplicateKeyError(name)
    return members


def _integer(text: str) -> int:
    if len(text) > _HUGE_DIGITS:
        return -_HUGE if text.startswith("-") else _HUGE
    return int(text)


def _fraction(text: str) -> float | int:
    number = float(text)
    if number.is_integer() or abs(number) == float("inf"):
        if not is_integral(text):
            return -0.5 if text.startswith("-") else 0.5
        if abs(number) == float("inf"):
            return -_HUGE if text.startswith("-") else _HUGE
    return number


def is_integral(text: str) -> bool:
    """Whether a JSON number is mathematically an integer, whatever a float would make of it."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return False
    whole, fraction, exponent = match[1], match[2] or "", match[3] or "0"
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return True
    negative = exponent.startswith("-")
    exponent = exponent.lstrip("+-").lstrip("0") or "0"
    if len(exponent) > 18:
        return not negative
    trailing_zeros = len(digits) - len(digits.rstrip("0"))
    shift = -int(exponent) if negative else int(exponent)
    return shift - len(fraction) + trailing_zeros >= 0


def _constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not a JSON number", name, 0)


def _lone_surrogate(text: str) -> int:
    """The offset of the first escape of a surrogate that is not half of a pair, in bytes."""
    halves = (
        match.start()
        for match in _PAIR_OR_ESCAPE.finditer(text)
        if len(match[0]) == 2 and _SURROGATE.match(text, match.start())
    )
    return len(text[: next(halves)].encode())


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members,
    parse_int=_integer,
    parse_float=_fraction,
    parse_constant=_constant,
)
