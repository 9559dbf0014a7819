"""HTTP archives."""

import base64
import json
from typing import Any

import pytest

from cheapgpu.cli.har import HarError, read_har
from cheapgpu.core.examples import STREAM, STREAM_REQUEST
from cheapgpu.core.verify import verify

BODY = STREAM.partition(b"\r\n\r\n")[2]


def entry(**members: Any) -> dict[str, Any]:
    """One entry as a browser saves it; members replaced."""
    response = {
        "status": 200,
        "headers": [{"name": "Content-Type", "value": "text/event-stream"}],
        "content": {"size": len(BODY), "mimeType": "text/event-stream", "text": BODY.decode()},
    }
    request = {
        "method": "POST",
        "url": "https://gpu7.example/v1/chat/completions?key=secret-value",
        "headers": [
            {"name": "Content-Type", "value": "application/json"},
            {"name": "Authorization", "value": "Bearer secret-value"},
        ],
        "postData": {"mimeType": "application/json", "text": STREAM_REQUEST.decode()},
    }
    return {
        "startedDateTime": "2026-11-30T12:00:00.000Z",
        "time": 1250.0,
        "request": request | members.pop("request", {}),
        "response": response | members.pop("response", {}),
        **members,
    }


def har(*entries: dict[str, Any]) -> bytes:
    """An archive of these entries."""
    return json.dumps({"log": {"version": "1.2", "entries": entries}}).encode()


def test_a_streamed_answer_is_judged() -> None:
    """The request, the head and the body are those of the entry; nothing is known of times."""
    archive = read_har(har(entry()))
    (exchange,) = archive.exchanges
    assert exchange.case == "entry-1"
    assert exchange.request is not None
    assert exchange.request.body == STREAM_REQUEST
    assert exchange.body == BODY
    assert not exchange.timed
    assert exchange.closed.t == 1.25
    assert archive.started == "2026-11-30T12:00:00.000Z"
    assert verify(archive.exchanges).verdict == "conforms"


def test_only_posts_are_exchanges() -> None:
    """The page and its pictures are not chat requests, and keep their numbers."""
    archive = read_har(har(entry(request={"method": "GET"}), entry()))
    assert [exchange.case for exchange in archive.exchanges] == ["entry-2"]


def test_no_secret_is_kept() -> None:
    """The key in a header stays behind, and what stands behind ? is not in the target."""
    archive = read_har(har(entry()))
    assert archive.target == "https://gpu7.example/v1/chat/completions"
    (exchange,) = archive.exchanges
    assert exchange.request is not None
    assert exchange.request.headers == (("content-type", "application/json"),)


def test_several_urls_are_counted() -> None:
    """An archive of two endpoints says so."""
    other = entry(request={"url": "https://gpu8.example/v1/chat/completions"})
    assert read_har(har(entry(), other)).target.endswith("/v1/chat/completions and 1 more")


def test_base64_bodies_are_decoded() -> None:
    """Bytes that are not text are kept so."""
    content = {"size": 3, "text": base64.b64encode(b"\xff\x00a").decode(), "encoding": "base64"}
    (exchange,) = read_har(har(entry(response={"content": content}))).exchanges
    assert exchange.body == b"\xff\x00a"


def test_a_coding_that_was_asked_for_is_undone() -> None:
    """Browsers ask for gzip and save text: that is no fault; a coding nobody asked for is one."""
    headers = [
        {"name": "content-type", "value": "text/event-stream"},
        {"name": "content-encoding", "value": "gzip"},
    ]
    asked = [{"name": "Accept-Encoding", "value": "gzip, br"}]
    (unasked,) = read_har(har(entry(response={"headers": headers}))).exchanges
    (wanted,) = read_har(
        har(entry(response={"headers": headers}, request={"headers": asked}))
    ).exchanges
    assert unasked.head is not None
    assert wanted.head is not None
    assert unasked.head.header("content-encoding") == "gzip"
    assert wanted.head.header("content-encoding") is None


def test_a_request_without_headers_has_its_declared_type() -> None:
    """Some tools keep the media type with the body only."""
    (exchange,) = read_har(har(entry(request={"headers": []}))).exchanges
    assert exchange.request is not None
    assert exchange.request.headers == (("content-type", "application/json"),)


def test_no_answer_is_no_answer() -> None:
    """A status of 0 means that none came: nothing is judged of it."""
    archive = read_har(har(entry(response={"status": 0})))
    report = verify(archive.exchanges)
    assert report.verdict == "not established"
    assert report.judgements[0].outcome == "unknown"


def test_an_empty_body_is_a_body() -> None:
    """An answer of no bytes can be judged."""
    (exchange,) = read_har(har(entry(response={"content": {"size": 0}}))).exchanges
    assert exchange.body == b""


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{", "not a HAR"),
        (b'{"log":{}}', "entries"),
        (b'{"log":{"entries":[{"request":1}]}}', r"entries\[0\]|entries\[\.\.\.\]"),
        (har(), "no entry of a POST"),
        (har(entry(response={"content": {"size": 9}})), "entry 1.*save the HAR with content"),
        (
            har(entry(response={"content": {"size": 9, "text": "@", "encoding": "base64"}})),
            "not base64",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused(data: bytes, problem: str) -> None:
    """The message names the place, and what to do."""
    with pytest.raises(HarError, match=problem):
        read_har(data)


def test_a_byte_order_mark_is_no_fault() -> None:
    """Some proxies write one in front of the archive."""
    assert len(read_har(b"\xef\xbb\xbf" + har(entry())).exchanges) == 1
