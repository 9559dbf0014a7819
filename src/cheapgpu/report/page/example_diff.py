"""The good and the bad example of a rule side by side: what is alike is counted, not repeated."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from cheapgpu.core.examples import Example
from cheapgpu.core.rules import BY_ID
from cheapgpu.report.block import seconds
from cheapgpu.report.excerpt import visible
from cheapgpu.report.page.safe_text import cut
from cheapgpu.report.style import Style, number

#: Lines that are alike and stand beside a difference; lines of one difference, and of one side.
_CONTEXT: Final = 1
_LINES: Final = 4
_SIDE: Final = 18
#: Letters of a line that the other side has nothing like.
_LETTERS: Final = 160
_STYLE: Final = Style()
_LENGTH: Final = "content-length: "

#: `same` in both · `own` in this one only · `note` says what is left out.
Kind = Literal["same", "own", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of an example; `differs` is the part that the other one has otherwise."""

    kind: Kind
    before: str
    differs: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleDiff:
    """Both examples, each with its lines."""

    good: tuple[Line, ...]
    bad: tuple[Line, ...]


@cache
def example_diff(rule: str) -> ExampleDiff:
    """Return the examples of a rule, compared line by line."""
    good, bad = _lines(BY_ID[rule].good), _lines(BY_ID[rule].bad)
    # Another length is a matter of course where the body is another.
    bodies = [[line for line in lines if not line.startswith(_LENGTH)] for lines in (good, bad)]
    if bodies[0] != bodies[1]:
        good, bad = bodies
    left: list[Line] = []
    right: list[Line] = []
    matcher = difflib.SequenceMatcher(None, good, bad, autojunk=False)
    blocks = matcher.get_opcodes()
    for position, (tag, start, stop, other, other_stop) in enumerate(blocks):
        if tag == "equal":
            same = _alike(good[start:stop], first=position == 0, last=position == len(blocks) - 1)
            left += same
            right += same
        else:
            ours, theirs = _differing(good[start:stop], bad[other:other_stop])
            left += ours
            right += theirs
    return ExampleDiff(good=_shortened(left, _SIDE), bad=_shortened(right, _SIDE))


def _lines(example: Example) -> list[str]:
    """The lines of an answer with their ends; times, where it came in several reads."""
    if not example:
        return ["(no answer)"]
    lines: list[str] = []
    for t, data in example:
        if len(example) > 1:
            lines.append(f"at {seconds(t)}" if data else f"at {seconds(t)} the body ends")
        # Line ends of a head are no matter of the profile; those of a body are.
        lines += [visible(_unended(line), _STYLE) for line in data.splitlines(keepends=True)]
    return lines


def _unended(line: bytes) -> bytes:
    return line.removesuffix(b"\r\n") if line.endswith(b"\r\n") else line


def _alike(lines: Sequence[str], *, first: bool, last: bool) -> list[Line]:
    head = 0 if first else _CONTEXT
    tail = 0 if last else _CONTEXT
    if len(lines) <= head + tail + 1:
        return [Line(kind="same", before=line) for line in lines]
    left_out = number(len(lines) - head - tail, "line")
    return [
        *(Line(kind="same", before=line) for line in lines[:head]),
        Line(kind="note", before=f"{left_out} alike"),
        *(Line(kind="same", before=line) for line in lines[len(lines) - tail :]),
    ]


def _differing(good: Sequence[str], bad: Sequence[str]) -> tuple[Sequence[Line], Sequence[Line]]:
    """Lines of one difference; the nth of one side is compared with the nth of the other."""
    pairs = [_pair(ours, theirs) for ours, theirs in zip(good, bad, strict=False)]
    left = [ours for ours, _ in pairs] + [_whole(line) for line in good[len(pairs) :]]
    right = [theirs for _, theirs in pairs] + [_whole(line) for line in bad[len(pairs) :]]
    return _shortened(left, _LINES), _shortened(right, _LINES)


def _whole(line: str) -> Line:
    return Line(kind="own", before="", differs=cut(line, _LETTERS))


def _pair(good: str, bad: str) -> tuple[Line, Line]:
    most = min(len(good), len(bad))
    head = next((n for n in range(most) if good[n] != bad[n]), most)
    most -= head
    tail = next((n for n in range(most) if good[-1 - n] != bad[-1 - n]), most)
    return _marked(good, head, tail), _marked(bad, head, tail)


def _marked(line: str, head: int, tail: int) -> Line:
    stop = len(line) - tail
    return Line(kind="own", before=line[:head], differs=line[head:stop], after=line[stop:])


def _shortened(lines: Sequence[Line], most: int) -> tuple[Line, ...]:
    """As many lines as fit, from the beginning and from the end."""
    if len(lines) <= most:
        return tuple(lines)
    half = most // 2
    note = Line(kind="note", before=f"{number(len(lines) - most + 1, 'line')} more")
    return (*lines[:half], note, *lines[len(lines) - most + half + 1 :])
