"""Bytes of a body and the reads that brought them."""

from cheapgpu.core.exchange import Exchange
from tests.core.exchanges import bare, exchange, unanswered


def test_a_byte_arrived_with_the_read_that_brought_it() -> None:
    """The time and number of the read are found for every offset, first and last included."""
    made = exchange(b"abcdefgh", cut=3)
    assert made.body == b"abcdefgh"
    assert [made.read_of(n) for n in range(8)] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert [made.time_of(n) for n in (0, 3, 7, 99)] == [0.1, 0.11, 0.12, 0.12]


def test_where_no_times_were_kept_none_are_given() -> None:
    """A bare body and an exchange without body have no time of any byte."""
    assert bare(b"abc").time_of(1) is None
    assert unanswered().time_of(0) is None
    assert isinstance(unanswered(), Exchange)


def test_a_header_is_found_without_its_case() -> None:
    """The first value counts; a missing field is None."""
    head = exchange(headers=(("Content-Type", "a"), ("content-type", "b"))).head
    assert head is not None
    assert (head.header("content-type"), head.header("etag")) == ("a", None)
