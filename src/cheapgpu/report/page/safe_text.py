"""Text of a stranger on a page: whatever would hide, reorder or pile up is written as its code.

Markup is no concern here: templates escape everything. This is about letters that a browser would
obey or not show: controls, bidi marks, letters without width, marks on marks.
"""

import unicodedata
from typing import Final

from cheapgpu.report.style import Style

_STYLE: Final = Style()
#: Marks that one letter may carry: scripts need a few, piles of them cover other lines.
_MARKS: Final = 3
#: Letters without a shape of their own that count as printable: fillers and the empty Braille cell.
_EMPTY: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def visible(text: str) -> str:
    """Return text with every letter that cannot be seen for what it is as a code: `<U+202E>`."""
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = _MARKS
    for letter in text:
        if unicodedata.category(letter)[0] == "M" and marks < _MARKS:
            marks += 1
            shown.append(letter)
            continue
        code = f"<U+{ord(letter):04X}>" if letter in _EMPTY else _STYLE.letter(letter)
        # A mark after a code or a space would sit on what is not its own.
        marks = 0 if code == letter and letter.isalpha() else _MARKS
        shown.append(code)
    return "".join(shown)


def cut(text: str, most: int) -> str:
    """Return text of at most `most` letters; an ellipsis stands for what is left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
