"""Excerpts: the fault is in view, the carets are below it, and nothing of the body acts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheapgpu.report.excerpt import end_excerpt, excerpt, tail, visible
from cheapgpu.report.style import Style, columns

STYLE = Style()
ASCII = Style(ascii=True)


def marked(lines: list[str]) -> str:
    """The text above the carets."""
    shown, carets = lines
    return "".join(
        letter
        for letter, caret in zip(shown, carets.ljust(len(shown)), strict=False)
        if caret == "^"
    )


def test_a_fault_is_shown_in_the_middle_of_its_surroundings() -> None:
    """There is context on both sides, cut with an ellipsis where it goes on."""
    body = b"a" * 50 + b"FAULT" + b"b" * 50
    lines = excerpt(body, 50, 5, STYLE, 25)
    assert lines == ["…aaaaaaaaaFAULTbbbbbbbbb…", "          ^^^^^"]


def test_room_that_one_side_does_not_need_goes_to_the_other() -> None:
    """At the beginning of a body there is more of what follows."""
    lines = excerpt(b"ab" + b"c" * 50, 0, 2, STYLE, 12)
    assert lines == ["abccccccccc…", "^^"]


def test_context_ends_where_the_event_does() -> None:
    """The neighbouring events are not shown; the blank line that ends this one is."""
    body = b"data: 1\n\ndata: FAULT\n\ndata: 3\n\n"
    assert excerpt(body, 15, 5, STYLE, 40) == ["data: FAULT⏎⏎", "      ^^^^^"]


def test_line_ends_that_close_a_fault_are_not_marked() -> None:
    """The carets of a whole event are below its text."""
    body = b"data: [DONE]\n\n"
    assert marked(excerpt(body, 0, len(body), STYLE, 40)) == "data: [DONE]"


def test_a_fault_that_is_too_long_shows_its_two_ends() -> None:
    """The middle is left out, and the carets leave it out, too."""
    body = b"{" + b"x" * 500 + b"}"
    shown, carets = excerpt(body, 0, len(body), STYLE, 20)
    assert shown == "{xxxxxxxxxx…xxxxxxx}"
    assert carets == "^^^^^^^^^^^ ^^^^^^^^"


def test_an_empty_place_has_one_caret() -> None:
    """Where something is missing between two bytes, the caret is below the second."""
    assert excerpt(b"abcd", 2, 0, STYLE, 20) == ["abcd", "  ^"]


def test_carets_follow_the_columns_of_wide_letters() -> None:
    """What stands before the fault may be wide: the carets are where the terminal draws it."""
    body = '"雨雨":BAD'.encode()
    lines = excerpt(body, body.index(b"BAD"), 3, STYLE, 40)
    assert lines == ['"雨雨":BAD', "       ^^^"]


@pytest.mark.parametrize(
    ("body", "at", "length", "row"),
    [
        (b'{"a":"\xff"}', 6, 1, '7b 22 61 22 3a 22 ff 22 7d                        {"a":"."}'),
        (b"\xef\xbb\xbf{}", 0, 5, "ef bb bf 7b 7d                                    ...{}"),
        (b"a\x00b", 0, 3, "61 00 62                                          a.b"),
        (b"\n\n\n", 0, 3, "0a 0a 0a                                          ⏎⏎⏎"),
        (b"a\tb", 1, 1, "61 09 62                                          a.b"),
    ],
)
def test_bytes_that_text_would_hide_are_shown_in_hex(
    body: bytes, at: int, length: int, row: str
) -> None:
    """Bad UTF-8, a byte order mark, NUL, line ends and control bytes are not shown as text."""
    shown, carets = excerpt(body, at, length, STYLE, 94)
    assert shown == row
    assert re.fullmatch(r" *\^\^( \^\^)*", carets)


def test_hex_points_at_the_first_hidden_byte_of_a_long_fault() -> None:
    """A fault of a thousand bytes with one bad byte shows that byte."""
    body = b"x" * 1000 + b"\xff" + b"y" * 1000
    shown, carets = excerpt(body, 0, len(body), STYLE, 94)
    assert shown[carets.index("^") : carets.index("^") + 2] == "ff"


def test_a_narrow_terminal_has_half_as_many_bytes_in_a_row() -> None:
    """Sixteen bytes with their text need 66 columns."""
    body = bytes(range(32))
    assert excerpt(body, 0, 32, STYLE, 66)[0].startswith(body[:16].hex(" "))
    assert excerpt(body, 0, 32, STYLE, 65)[0].startswith(body[:8].hex(" ") + "   ")


def test_pretty_printed_json_is_text() -> None:
    """Line ends within a longer fault hide nothing."""
    body = b'{\n  "error": 1\n}'
    assert excerpt(body, 0, len(body), STYLE, 40)[0] == '{⏎  "error": 1⏎}'


def test_the_end_of_a_body_is_marked() -> None:
    """What was never dispatched is shown in hex, with a caret where more was needed."""
    shown, carets = end_excerpt(b"data: 1\n\ndata: [DONE]\n", 9, STYLE, 94)
    assert shown.startswith(b"data: [DONE]\n".hex(" ") + "   ")
    assert carets == " " * 39 + "^ the body ends here"


@pytest.mark.parametrize("length", range(20))
def test_the_end_mark_fits_however_long_the_row_is(length: int) -> None:
    """On a narrow terminal the words stand where there is room for them."""
    lines = end_excerpt(b"x" * length, 0, STYLE, 34)
    assert all(columns(line) <= 34 for line in lines)
    assert "the body ends here" in " ".join(lines)


def test_the_tail_of_a_body_is_its_last_text() -> None:
    """The end is what is shown, with a caret behind it."""
    shown, carets = tail(b"a" * 100 + b"the end\n\n", STYLE, 30)
    assert shown == "…aaaaaaaaaaaaaaaaaaathe end⏎⏎"
    assert carets == "          the body ends here ^"


def test_bytes_become_visible_text() -> None:
    """Text stays, everything else becomes its code."""
    assert visible(b"a\x1b[0m\xff\r\n\xe9\x9b\xa8", STYLE) == "a<1B>[0m<FF><0D>⏎雨"
    assert visible(b"a\n\xe9\x9b\xa8", ASCII) == "a<0A><U+96E8>"


@given(
    body=st.one_of(
        st.binary(max_size=3000),
        st.text(max_size=800).map(lambda text: text.encode(errors="surrogatepass")),
        st.lists(
            st.sampled_from([b"data: ", b"\n\n", b"\r\n", b'{"a":1}', b"\x1b[31m", b"x" * 90])
        ).map(b"".join),
    ),
    at=st.integers(0, 3100),
    length=st.integers(0, 3100),
    width=st.integers(34, 94),
    style=st.sampled_from([STYLE, ASCII]),
)
def test_no_excerpt_is_too_wide_or_dangerous(
    body: bytes, at: int, length: int, width: int, style: Style
) -> None:
    """Whatever the bytes and wherever the fault: two lines, printable, in width, and a caret."""
    for lines in (
        excerpt(body, at, length, style, width),
        end_excerpt(body, at, style, width),
        tail(body, style, width),
    ):
        assert all(columns(line) <= width for line in lines)
        assert all(line.isprintable() for line in lines)
        assert "^" in lines[1]
        assert style is STYLE or all(line.isascii() for line in lines)
