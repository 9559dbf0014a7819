"""Heads as they are written."""

import re
import time
from email.utils import parsedate_to_datetime

import pytest

from cheapgpu.wire.message import Clock, request_bytes, response_head


def test_a_request_says_how_long_it_is() -> None:
    """The length of a body stands in the head, also that of an empty one; GET has neither."""
    assert request_bytes("POST", "/a?b", b"host: x\r\n", b"body") == (
        b"POST /a?b HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody"
    )
    assert request_bytes("POST", "/", b"") == b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n"
    assert request_bytes("GET", "/", b"host: x\r\n") == b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.parametrize("keep", [True, False])
def test_a_head_says_what_becomes_of_the_connection(*, keep: bool) -> None:
    """Status, the given lines, framing, date; and `connection: close` where it is not kept."""
    head = response_head(200, b"a: b\r\n", framing=b"content-length: 0\r\n", keep=keep)
    end = b"" if keep else b"connection: close\r\n"
    start = rb"HTTP/1\.1 200 OK\r\na: b\r\ncontent-length: 0\r\ndate: [^\r]+ GMT\r\n"
    assert re.fullmatch(start + end + b"\r\n", head)


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (429, b"HTTP/1.1 429 Too Many Requests\r\n"),
        (499, b"HTTP/1.1 499 Client Closed Request\r\n"),
        (599, b"HTTP/1.1 599 Unknown\r\n"),
    ],
)
def test_every_status_has_its_line(status: int, line: bytes) -> None:
    """A status is written with its phrase, known or not."""
    assert response_head(status, b"", framing=b"", keep=True).startswith(line)


def test_the_date_is_written_anew_each_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Date field is of this second, in the form of RFC 9110 section 5.6.7."""
    clock = Clock()
    now = time.time()
    lines = []
    for later in (0.0, 0.0, 1.0, 3600.0):
        monkeypatch.setattr(time, "time", lambda later=later: now + later)
        line = clock.date().decode()
        assert line.startswith("date: ")
        assert line.endswith(" GMT\r\n")
        assert parsedate_to_datetime(line[6:-2]).timestamp() == int(now + later)
        lines.append(line)
    assert lines[0] is lines[1] or lines[0] == lines[1]
    assert len(set(lines)) == 3
