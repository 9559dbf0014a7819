"""Text on a terminal: safe letters, columns, breaks."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheapgpu.report.style import Style, columns, join, number, wrap

PLAIN = Style()
ASCII = Style(ascii=True)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("llama-3.1 (é, 雨)", "llama-3.1 (é, 雨)"),
        ("a\x1b[31mb", "a<1B>[31mb"),
        ("a\nb\tc\x00\x7f", "a<0A>b<09>c<00><7F>"),
        ("\x9b31m", "<U+009B>31m"),
        ("\u202egnp.exe", "<U+202E>gnp.exe"),
        ("a\u200bb\u2028c\ufeff", "a<U+200B>b<U+2028>c<U+FEFF>"),
        ("e\u0301", "e<U+0301>"),
        ("\udcff", "<U+DCFF>"),
    ],
)
def test_what_could_mislead_a_terminal_is_written_as_its_code(text: str, safe: str) -> None:
    """Controls, bidi marks, invisible and combining letters and surrogates are never printed."""
    assert PLAIN.text(text) == safe


def test_ascii_spells_our_own_signs_and_codes_all_others() -> None:
    """In ASCII a citation stays readable, and a stranger's letters become codes."""
    assert ASCII.text("profile § Request ¶4 · é…") == (
        "profile section Request par. 4 - <U+00E9>..."
    )


@given(st.text())
def test_safe_text_is_printable(text: str) -> None:
    """Whatever comes in, nothing that is not printable goes out, and in ASCII nothing but ASCII."""
    assert PLAIN.text(text).isprintable()
    assert not any(unicodedata.category(letter)[0] in "CM" for letter in PLAIN.text(text))
    assert ASCII.text(text).isascii()


def test_colour_is_only_where_it_is_wanted() -> None:
    """Paint adds colour codes with colour, and nothing without, or to nothing."""
    assert Style(colour=True).paint("^^", "red") == "\x1b[31m^^\x1b[0m"
    assert Style(colour=True).paint("  ", "red") == "  "
    assert PLAIN.paint("^^", "red") == "^^"


def test_wide_letters_take_two_columns() -> None:
    """Chinese, Japanese and emoji count double, as terminals draw them."""
    assert columns("aé雨🚀") == 1 + 1 + 2 + 2


@given(st.text(), st.integers(10, 100), st.integers(0, 6))
def test_no_line_is_wider_than_asked(text: str, width: int, indent: int) -> None:
    """Words are broken where they must be, and no letter but space is lost."""
    safe = PLAIN.text(text)
    lines = wrap(safe, width, first=" " * indent)
    assert all(columns(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(safe.split())


def test_wrap_breaks_at_spaces_and_indents_the_rest() -> None:
    """The first line has its beginning, the others as much indentation."""
    assert wrap("one two three", 11, first="a: ") == ["a: one two", "   three"]


def test_join_breaks_between_phrases() -> None:
    """A phrase stays whole where it fits on a line of its own."""
    assert join(["one two", "three four", "five"], 20, first="  ") == [
        "  one two",
        "  three four · five",
    ]


def test_join_breaks_a_phrase_that_fits_nowhere() -> None:
    """A phrase wider than the line is wrapped like text."""
    assert join(["one", "two three four"], 9, by=", ") == ["one,", "two three", "four"]


@given(st.lists(st.text()), st.integers(12, 100))
def test_joined_lines_keep_their_width(parts: list[str], width: int) -> None:
    """However long the phrases, no line is wider than asked."""
    lines = join([PLAIN.text(part) for part in parts], width, first="  ")
    assert all(columns(line) <= width for line in lines)


def test_numbers_have_their_plural() -> None:
    """One is one thing, every other number is things."""
    assert [number(n, "read") for n in (0, 1, 2)] == ["0 reads", "1 read", "2 reads"]
