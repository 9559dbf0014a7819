"""Answers with their heads."""

import pytest

from cheapgpu.cli.http_message import MessageError, begins_message, message_exchange

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: [DONE]\n\n"


def test_a_head_and_a_body_are_told_apart() -> None:
    """The status, the fields in lower case, and the rest as the body."""
    exchange = message_exchange("answer", ((0.0, ANSWER),), timed=False)
    assert exchange.head is not None
    assert exchange.head.status == 200
    assert exchange.head.headers == (("content-type", "text/event-stream"),)
    assert exchange.body == b"data: [DONE]\n\n"
    assert exchange.closed.how == "unstated"


@pytest.mark.parametrize("line", [b"HTTP/1.1 200 OK", b"HTTP/2 200 ", b"HTTP/3 200"])
def test_every_version_of_http_begins_a_message(line: bytes) -> None:
    """As curl prints it, with or without a reason phrase."""
    assert begins_message(line + b"\r\n\r\n")
    assert begins_message(line + b"\n\n")


@pytest.mark.parametrize("data", [b"data: HTTP/1.1 200 OK\n\n", b"{}", b"HTTP", b""])
def test_other_bytes_begin_none(data: bytes) -> None:
    """A body is not taken for a head."""
    assert not begins_message(data)


def test_interim_answers_are_passed_over() -> None:
    """What curl prints of a 100 Continue is not the answer."""
    message = b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER
    exchange = message_exchange("answer", ((0.0, message),), timed=False)
    assert exchange.head is not None
    assert exchange.head.status == 200


def test_a_head_without_its_end_is_refused() -> None:
    """A head that was cut cannot be judged, and the message says how to save it whole."""
    with pytest.raises(MessageError, match="curl -iN"):
        message_exchange("answer", ((0.0, ANSWER[:20]),), timed=False)


def test_a_coding_that_may_be_undone_is_refused() -> None:
    """Whether the body is still coded cannot be told from the file."""
    message = ANSWER.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n")
    with pytest.raises(MessageError, match="--compressed"):
        message_exchange("answer", ((0.0, message),), timed=False)
    assert message_exchange("answer", ((0.0, message),), timed=True).head is not None


def test_a_timed_answer_that_is_too_short_was_cut() -> None:
    """Examples say by their announced length whether they are whole."""
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd"
    assert message_exchange("x", ((0.1, whole),), timed=True).closed.how == "length"
    assert message_exchange("x", ((0.1, whole[:-1]),), timed=True).closed.how == "eof"


def test_reads_keep_their_times() -> None:
    """Later reads follow on the first one's body; an empty one only ends it."""
    reads = ((0.1, ANSWER), (2.0, b": late\n\n"), (3.0, b""))
    exchange = message_exchange("x", reads, timed=True)
    assert [(read.t, read.at, len(read.data)) for read in exchange.reads] == [
        (0.1, 0, 14),
        (2.0, 14, 8),
    ]
    assert exchange.closed.t == 3.0
