"""HTTP/1.1 framing, without a network."""

import h11
import pytest

from cheapgpu.check.framing import Framing, Part

OK = b"HTTP/1.1 200 OK\r\n"


def framing() -> Framing:
    """A framing whose request has been written."""
    one = Framing()
    one.request("/v1", (("host", "gpu.example"), ("content-length", "2")), b"{}")
    return one


def parts(*reads: bytes) -> list[Part]:
    """What each of these reads brings."""
    one = framing()
    return [one.receive(read) for read in reads]


def test_request_is_written_as_given() -> None:
    """The bytes of a request are its line, its fields in their order, and its body."""
    fields = (("host", "gpu.example"), ("authorization", "Bearer k"), ("content-length", "2"))
    written = Framing().request("/v1?a=b", fields, b"{}")
    assert written == (
        b"POST /v1?a=b HTTP/1.1\r\nhost: gpu.example\r\nauthorization: Bearer k\r\n"
        b"content-length: 2\r\n\r\n{}"
    )


def test_capitals_and_spaces_are_written_as_given() -> None:
    """A name in capitals and a value that ends in spaces reach the endpoint as they are meant."""
    fields = (("host", "gpu.example"), ("AUTHORIZATION", "Bearer  \t "), ("content-length", "0"))
    written = Framing().request("/v1", fields, b"")
    assert b"\r\nAUTHORIZATION: Bearer  \t \r\n" in written


def test_field_that_would_break_the_framing_is_not_written() -> None:
    """A line break in a value never becomes a field of its own."""
    fields = (("host", "gpu.example"), ("x-a", "1\r\nx-b: 2"), ("content-length", "0"))
    with pytest.raises(h11.LocalProtocolError):
        Framing().request("/v1", fields, b"")


def test_head_and_body_of_known_length() -> None:
    """A body of announced length ends with its last byte, in the read that brings it."""
    head, body = parts(OK + b"X-A: 1\r\nContent-Length: 4\r\n\r\nab", b"cd")
    assert head == Part(head=(200, (("x-a", "1"), ("content-length", "4"))), body=b"ab")
    assert body == Part(body=b"cd", end="length")


def test_chunks_lose_their_framing_however_they_are_cut() -> None:
    """Chunk sizes, extensions and trailers are no part of a body, cut at every byte or whole."""
    answer = (
        OK + b"transfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\ntrailer: 1\r\n\r\n"
    )
    whole = parts(answer)
    assert (whole[0].body, whole[0].end) == (b"abcde", "chunked-end")
    cut = parts(*(answer[n : n + 1] for n in range(len(answer))))
    assert b"".join(part.body for part in cut) == b"abcde"
    assert [part.end for part in cut if part.end] == ["chunked-end"]


def test_unframed_body_ends_with_its_connection() -> None:
    """Without length or chunks the body goes on until the connection ends (HTTP/1.0 too)."""
    for version in (b"HTTP/1.0", b"HTTP/1.1"):
        head, end = parts(version + b" 200 OK\r\n\r\nabc", b"")
        assert (head.body, head.end) == (b"abc", None)
        assert (end.end, end.detail) == ("eof", "")


@pytest.mark.parametrize("fields", [b"content-length: 9", b"transfer-encoding: chunked"])
def test_end_before_the_announced_end_is_told(fields: bytes) -> None:
    """A connection that ends within a framed body ends the exchange as it was: by its end."""
    _, end = parts(OK + fields + b"\r\n\r\n3\r\nab", b"")
    assert end == Part(end="eof", detail="the connection ended before the answer did")


def test_end_without_an_answer_is_told() -> None:
    """A connection that ends before any head has its own words."""
    (part,) = parts(b"")
    assert part == Part(end="eof", detail="the connection ended without an answer")


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_answers_that_have_no_body_end_at_once(status: bytes) -> None:
    """Statuses that never have a body end with their head."""
    (part,) = parts(b"HTTP/1.1 " + status + b"\r\n\r\n")
    assert part.end == "length"


def test_informational_heads_are_passed_over() -> None:
    """Heads of status 1xx are not the answer, and none of their fields is kept."""
    early = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    (part,) = parts(b"HTTP/1.1 100 Continue\r\n\r\n" + early + OK + b"content-length: 0\r\n\r\n")
    assert part == Part(head=(200, (("content-length", "0"),)), end="length")


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no HTTP/1.1 status line"),
        (b"\x00\x01\x02", "no HTTP/1.1 status line"),
        (b"\r\n\r\n", "no HTTP/1.1 status line"),
        (b"HTTP/2 200\r\n\r\n", "no HTTP/1.1 status line"),
        (OK + b"no colon secret\r\n\r\n", "a malformed header line"),
        (OK + b" folded: secret\r\n\r\n", "a malformed header line"),
        (OK + b"content-length: secret\r\n\r\n", "a content-length that is no number"),
        (OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\n", "two different content-lengths"),
        (OK + b"transfer-encoding: gzip\r\n\r\n", "a transfer-encoding other than chunked"),
        (
            OK + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
            "two transfer-encodings",
        ),
        (OK + b"transfer-encoding: chunked\r\n\r\nsecret\r\n", "a chunk whose size is no number"),
        (OK + b"transfer-encoding: chunked\r\n\r\n1\r\nab\r\n", "a chunk longer than its size"),
        (b"HTTP/1.1 101 Go\r\nupgrade: x\r\n\r\n", "a change of protocol that was not asked for"),
    ],
)
def test_broken_answer_ends_by_reset_and_is_not_quoted(answer: bytes, detail: str) -> None:
    """What is not HTTP/1.1 ends the exchange with a reason that repeats nothing of the answer."""
    (part,) = parts(answer)
    assert (part.end, part.detail) == ("reset", f"broken HTTP: {detail}")
    assert "secret" not in part.detail


def test_body_before_a_broken_chunk_is_kept() -> None:
    """Bytes that came before the framing broke are part of the body."""
    (part,) = parts(OK + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n")
    assert (part.body, part.end) == (b"ab", "reset")


def test_tls_where_http_was_asked_for_is_recognised() -> None:
    """A TLS alert in answer to plain HTTP is called what it is."""
    (part,) = parts(b"\x15\x03\x01\x00\x02\x02\x46")
    assert (part.end, part.detail) == ("reset", "the answer is TLS, not HTTP")


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"x: " + b"a" * 40_000,
        OK + b"x: " + b"a" * 40_000 + b"\r\n\r\n",
        OK + b"x: 1\r\n" * 101 + b"\r\n",
    ],
)
def test_head_over_its_limits_is_cut(answer: bytes) -> None:
    """A head over 32 KiB or 100 fields is no fault of the endpoint: we stop reading."""
    (part,) = parts(answer)
    assert part == Part(end="cancelled", detail="a head over 32 KiB or 100 fields")


def test_head_that_has_begun_is_known() -> None:
    """Whether part of a head waits can be seen, for the clock that runs then."""
    one = framing()
    begun = [one.head_begun]
    for read in (b"HTTP/1.1 2", b"00 OK\r\ncontent-length: 4\r\n\r\nab"):
        one.receive(read)
        begun.append(one.head_begun)
    assert begun == [False, True, False]
