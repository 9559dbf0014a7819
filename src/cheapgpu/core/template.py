"""Recognises events that differ from a verified one in their text alone, without decoding them.

Once a chunk of content has passed every check, the bytes before and after its text are kept.
Another event that is those bytes around another JSON string body differs from it in that text
alone: no name, no number and no identity can have changed.
"""

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

from cheapgpu.core.messages import Chunk

#: Maps every byte that may not stand for itself within a JSON string to another one, so that a body
#: that comes back unchanged has none. (`bytes.translate` is the quickest test that there is.)
STRING_BYTES: Final = bytes(
    byte if byte >= 0x20 and byte not in b'"\\' else byte ^ 1 for byte in range(256)
)
#: The same, and every byte that is not ASCII.
ASCII_STRING_BYTES: Final = STRING_BYTES[:0x80] + bytes(0x80)
#: A JSON string body without `\u`, whose surrogates need a closer look.
_SIMPLE_BODY: Final = re.compile(rb'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*+')
_CONTENT: Final = re.compile(rb'"content"[ ]?:[ ]?"((?:[^"\\\x00-\x1f]|\\.)*+)"')
#: How far a template looks ahead at once, in bytes.
_AHEAD: Final = 32768

_decode_chunk: Final = msgspec.json.Decoder(Chunk).decode
_decode: Final = msgspec.json.Decoder().decode


class Template(Struct, frozen=True, gc=False):
    """The bytes of an event around its text, and their lengths."""

    prefix: bytes
    suffix: bytes
    #: The two: joined by a text, they are its event.
    ends: tuple[bytes, bytes]
    #: What stands between two texts: a suffix and the next prefix.
    joint: bytes
    #: Bytes of the event beside its text.
    frame: int
    #: Bytes that two events have at least.
    two: int
    #: Bytes before the text, and after it.
    text_at: int
    text_to: int

    def all_texts(self, chunk: bytes) -> list[bytes]:
        """The texts of a chunk that is nothing but events that fit; none if it is not.

        It is `prefix`, texts with `joint` between them, and `suffix`; and no text ends before its
        suffix, for none has a quote. (So one with an escape fits nowhere here.)
        """
        if not (chunk.startswith(self.prefix) and chunk.endswith(self.suffix)):
            return []
        if len(chunk) < self.frame:  # the two overlap
            return []
        bodies = chunk[self.text_at : len(chunk) - self.text_to].split(self.joint)
        together = b"".join(bodies)
        return bodies if together.translate(STRING_BYTES) == together else []

    def follow(self, chunk: bytes, position: int, many: int) -> list[bytes]:
        """The texts of the events from `position` on that fit, at most `many`, one by one.

        Quicker than `texts` for a few events. A text ends where the suffix first follows; one that
        is no string body by then fits nowhere.
        """
        prefix, suffix = self.ends
        lead, tail = self.text_at, self.text_to
        bodies: list[bytes] = []
        while chunk.startswith(prefix, position) and len(bodies) < many:
            start = position + lead
            end = chunk.find(suffix, start)
            body = chunk[start:end]
            if end < 0 or not is_string_body(body):
                break
            bodies.append(body)
            position = end + tail
        return bodies

    def texts(self, chunk: bytes, position: int, many: int) -> tuple[list[bytes], bool]:
        """The texts of the events from `position` on that fit, at most `many`, none left out.

        Also whether they are all there is to see: False means that another event cut them short.
        """
        end = chunk.find(b"\n", position) + 2
        if not chunk.startswith(self.suffix, end - self.text_to):
            return [], False
        # Split at one byte: each event gives its line and the blank line after it.
        lines = chunk[position : position + _AHEAD].split(b"\n", 2 * many)
        blanks = lines[1:-1:2]
        events = lines[: 2 * len(blanks) : 2]
        lead, tail = self.text_at, 2 - self.text_to
        bodies = [event[lead:tail] for event in events]
        # The end of the answer, which no template fits, is the usual end of what is at hand.
        count = len(bodies)
        while count and not self._fits(events[count - 1], bodies[count - 1], blanks[count - 1]):
            count -= 1
        del bodies[count:]
        text = b"".join(bodies)
        together = self.joint.join(bodies) + self.suffix
        if text.translate(STRING_BYTES) == text and chunk.startswith(together, position + lead):
            return bodies, True
        each = enumerate(zip(events, bodies, blanks, strict=False))
        del bodies[next((n for n, event in each if not self._fits(*event)), count) :]
        return bodies, False

    def _fits(self, line: bytes, body: bytes, blank: bytes) -> bool:
        return (
            not blank
            and len(line) + 2 >= self.frame
            and line.startswith(self.prefix)
            and self.suffix.startswith(line[len(line) + 2 - self.text_to :])
            and _SIMPLE_BODY.fullmatch(body) is not None
        )


def is_string_body(body: bytes) -> bool:
    """Whether bytes are a JSON string body without escapes of code units, UTF-8 aside."""
    return body.translate(STRING_BYTES) == body or _SIMPLE_BODY.fullmatch(body) is not None


def learn(event: bytes, content: str) -> Template | None:
    """Make a template of an event of one `data: ` line that passed every check and adds `content`.

    The proof that the bytes between prefix and suffix are the content: with one character more
    there, the decoded content has that character more. Names are unique in the event, so no other
    value is meant; the bytes are one whole JSON string, so any other string body keeps the text
    well-formed; and nothing else in it changes. None if that cannot be shown. Raises
    msgspec.DecodeError for an event whose numbers msgspec does not take as integers.
    """
    match = _CONTENT.search(event)
    if match is None:
        return None
    prefix, suffix = event[: match.start(1)], event[match.end(1) :]
    chunk = _decode_chunk(event[6 : match.end(1)] + b"." + suffix)
    if chunk.choices[0].delta.content != content + ".":
        return None
    return _template(prefix, suffix)


def learn_frame(event: bytes, value: dict[str, Any]) -> Template | None:
    """Make a template of any event of one `data: ` line whose strict JSON is `value`.

    As `learn`, for chunks that do not match the schema: with one character more between prefix and
    suffix, the value is the same but for its content. None if that cannot be shown.
    """
    match = _CONTENT.search(event)
    if match is None:
        return None
    prefix, suffix = event[: match.start(1)], event[match.end(1) :]
    probe = _decode(event[6 : match.end(1)] + b"." + suffix)
    content = value["choices"][0]["delta"]["content"]
    delta = probe["choices"][0]["delta"]
    if delta["content"] != content + ".":
        return None
    delta["content"] = content
    return _template(prefix, suffix) if probe == value else None


def _template(prefix: bytes, suffix: bytes) -> Template:
    before, after = len(prefix), len(suffix)
    frame = before + after
    ends = (prefix, suffix)
    return Template(prefix, suffix, ends, suffix + prefix, frame, 2 * frame, before, after)
