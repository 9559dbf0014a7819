"""How text looks on a terminal: its width, its colour, and letters that are safe to print.

Bodies, ids, models and headers come from a stranger. Whatever could move the cursor, change the
colour, run text backwards or hide is written as its code: `<1B>` is a byte, `<U+202E>` a character.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

#: The columns that a report uses: fewer cannot be read, more are tiring to.
LEAST_WIDTH: Final = 40
MOST_WIDTH: Final = 100

Colour = Literal["red", "yellow", "cyan"]
_CODES: Final[dict[Colour, str]] = {"red": "31", "yellow": "33", "cyan": "36"}

#: How the project's own sentences are spelled where only ASCII may be written.
_SPELLED: Final = str.maketrans(
    {"·": "-", "…": "...", "§": "section", "¶": "par. ", "✗": "x", "↳": "->", "⏎": "<0A>"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The terminal that a report is written for; the width is in columns."""

    width: int = MOST_WIDTH
    colour: bool = False
    ascii: bool = False

    def text(self, text: str) -> str:
        """Return a sentence with everything in it made safe to print."""
        if self.ascii:
            text = text.translate(_SPELLED)
        if text.isascii() and text.isprintable():
            return text
        return "".join(self.letter(letter) for letter in text)

    def letter(self, letter: str) -> str:
        """Return one character as it is, or its code where it cannot be shown for what it is."""
        if letter.isascii():
            return letter if letter.isprintable() else f"<{ord(letter):02X}>"
        # Combining marks have no place of their own: carets below them would point elsewhere.
        if self.ascii or not letter.isprintable() or unicodedata.category(letter)[0] == "M":
            return f"<U+{ord(letter):04X}>"
        return letter

    def paint(self, text: str, colour: Colour) -> str:
        """Return safe text in a colour, where there is colour."""
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if self.colour and text.strip() else text

    @property
    def ellipsis(self) -> str:
        """What stands for text left out."""
        return "..." if self.ascii else "…"


def number(count: int, thing: str) -> str:
    """Return a count of things in words: `1 read`, `2 reads`."""
    return f"{count} {thing}{'s' * (count != 1)}"


def columns(text: str) -> int:
    """Return how many columns safe text takes on a terminal (Unicode Standard Annex 11)."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def wrap(text: str, width: int, *, first: str = "", rest: str | None = None) -> list[str]:
    """Break safe text at spaces into lines of `width` columns; words longer than that are broken.

    `first` begins the first line and `rest` the others; by default that is as many spaces.
    """
    rest = " " * columns(first) if rest is None else rest
    lines: list[str] = []
    line, empty = first, True
    for word in text.split():
        if not empty and columns(line) + 1 + columns(word) > width:
            lines.append(line)
            line, empty = rest, True
        while columns(line) + (not empty) + columns(word) > width:
            kept, word = _split(word, max(width - columns(line), 2))  # noqa: PLW2901 -- what is left
            lines.append(line + kept)
            line = rest
        line, empty = (line + word if empty else f"{line} {word}"), False
    return [*lines, line.rstrip()]


def join(
    parts: Iterable[str], width: int, *, first: str = "", rest: str | None = None, by: str = " · "
) -> list[str]:
    """Join phrases of safe text by a separator, and break lines between phrases where needed."""
    rest = " " * columns(first) if rest is None else rest
    comma = by.rstrip() if by.startswith(",") else ""
    lines: list[str] = []
    line, empty = first, True
    phrases = list(parts)
    for index, phrase in enumerate(phrases, 1):
        part = phrase + comma if index < len(phrases) else phrase
        gap = by.removeprefix(comma)
        if not empty and columns(line) + columns(gap) + columns(part) > width:
            lines.append(line)
            line, empty = rest, True
        if columns(line) + columns(part) > width:
            *before, line = wrap(part, width, first=line, rest=rest)
            lines += before
        else:
            line += part if empty else gap + part
        empty = False
    return [*lines, line]


def _split(word: str, width: int) -> tuple[str, str]:
    """Split a word after as many letters as fit into `width` columns."""
    taken = 0
    for index, letter in enumerate(word):
        taken += columns(letter)
        if taken > width:
            return word[:index], word[index:]
    return word, ""
