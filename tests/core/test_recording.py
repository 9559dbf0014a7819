"""Recordings: written as it happens, read back whole, refused otherwise."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cheapgpu.core.errors import CheapGPUError, RecordingError
from cheapgpu.core.exchange import Exchange, Head, Request
from cheapgpu.core.recording import Recorder, masked, read_recording
from tests.core.exchanges import exchange, unanswered, whole


def recorded(*exchanges: Exchange, secrets: tuple[str, ...] = ()) -> bytes:
    """The recording of these exchanges."""
    recorder = Recorder(secrets)
    begin = recorder.begin(tool="t 1", started="2026-11-30T00:00:00Z", target="https://e.example")
    return begin + b"".join(map(recorder.exchange, exchanges)) + recorder.end()


def test_what_is_written_is_read_back() -> None:
    """Every exchange comes back as it was: request, times, reads, and how it ended."""
    busy = exchange()
    busy = replace(busy, closed=replace(busy.closed, lag=0.25))
    made = (exchange(cut=40), whole(), unanswered(detail="connection refused"), busy)
    recording = read_recording(recorded(*made))
    assert recording.exchanges == made
    assert (recording.tool, recording.target) == ("t 1", "https://e.example")


def test_the_corpus_is_readable() -> None:
    """Every recording of the corpus is whole."""
    files = [*Path("tests/data/corpus").rglob("*.jsonl")]
    assert len(files) == 175
    assert all(len(read_recording(file.read_bytes()).exchanges) == 1 for file in files)


def test_every_way_of_cutting_a_recording_short_is_refused() -> None:
    """No proper prefix of a recording is a recording: nothing in it is judged."""
    data = recorded(exchange(cut=200), whole())
    for end in range(len(data)):
        with pytest.raises(RecordingError):
            read_recording(data[:end])


def test_a_changed_byte_is_found() -> None:
    """A recording that was edited after it was written does not match its digest."""
    data = recorded(whole())
    with pytest.raises(RecordingError, match="line 7: the digest does not match"):
        read_recording(data.replace(b'"t": 0.1,', b'"t": 0.2,'))


LINES = recorded(whole()).splitlines(keepends=True)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no end line"),
        ([LINES[1]], "line 1: a recording begins with one begin line"),
        ([LINES[5]], "line 1: a recording begins with one begin line"),
        ([LINES[0], LINES[0]], "line 2: a recording begins with one begin line"),
        ([LINES[0], LINES[2]], "line 2: this line belongs to no exchange"),
        ([LINES[0], LINES[1], LINES[1]], "line 3: the exchange before this one was not closed"),
        ([LINES[0], LINES[1], LINES[5]], "line 3: the last exchange was not closed"),
        ([LINES[0], LINES[1], LINES[4]], "line 3: a read line is out of its order"),
        ([*LINES[:4], LINES[3]], "line 5: a head line is out of its order"),
        ([*LINES[:4], LINES[2]], "line 5: a sent line is out of its order"),
        ([*LINES, b"\n"], "line 8: something follows the end line"),
        ([b"nonsense\n"], "line 1: not a line of a recording"),
        ([b'{"kind":"begin"}\n'], "line 1: not a line of a recording"),
        ([b'{"kind":"x"}\n'], "line 1: not a line of a recording"),
        ([b'{"kind":"\xff"}\n'], "line 1: not a line of a recording"),
        ([LINES[0], b'{"kind":"sent","t":1,"x":' + b"[" * 5000 + b"\n"], "line 2: not a line"),
        ([b'{"kind":"' + b"x" * 500 + b'"}\n'], "line 1: not a line of a recording: .{1,130}$"),
        ([LINES[0].replace(b"recording/1", b"recording/2")], "line 1: format"),
        ([LINES[0].replace(b"draft.1", b"draft.2")], "line 1: profile"),
        ([LINES[0][:-1]], "line 1: the last line is cut short"),
    ],
)
def test_a_line_out_of_its_place_is_named(lines: list[bytes], message: str) -> None:
    """The number of the line and what is wrong with it are told."""
    if lines and lines[-1] == LINES[5]:
        lines = [*lines[:-1], LINES[6]]
    with pytest.raises(CheapGPUError, match=message):
        read_recording(b"".join(lines))


def test_a_gap_in_a_body_is_refused() -> None:
    """The offset of a read must be the number of bytes before it."""
    data = recorded(exchange(cut=300)).replace(b'"at": 300', b'"at": 301')
    with pytest.raises(RecordingError, match="body bytes at 301, but 300 came before"):
        read_recording(data)


def test_the_number_of_exchanges_is_checked() -> None:
    """An end line that counts other exchanges than there are is refused."""
    recorder = Recorder()
    begin = recorder.begin(tool="t", started="s", target="u")
    line = recorder.exchange(whole())
    ending = json.loads(recorder.end()) | {"cases": 2}
    with pytest.raises(RecordingError, match="2 exchanges were recorded, 1 are here"):
        read_recording(begin + line + json.dumps(ending).encode() + b"\n")


def test_no_secret_reaches_a_recording() -> None:
    """Keys are masked in header fields by name, and wherever an endpoint repeats them."""
    key = "sk-very-secret"
    asked = Request(
        method="POST",
        url="https://e.example",
        headers=(
            ("Authorization", f"Bearer {key}"),
            ("proxy-authorization", key),
            ("x-api-key", "other-secret"),
            ("cookie", "session-secret"),
            ("accept", "application/json"),
        ),
        body=b"{}",
    )
    answered = exchange(f"your key is {key}!".encode())
    made = Exchange(
        case="c",
        request=asked,
        head=Head(t=0.0, status=401, headers=(("www-authenticate", key), ("set-cookie", "s"))),
        reads=answered.reads,
        closed=answered.closed,
    )
    data = recorded(made, secrets=(key, "", "not there"))
    assert b"secret" not in data
    read = read_recording(data).exchanges[0]
    assert read.body == b"your key is **************!"
    assert read.request is not None
    assert read.request.headers[0] == ("Authorization", "Bearer ***")
    assert read.request.headers[4] == ("accept", "application/json")
    assert read.head is not None
    assert read.head.headers == (("www-authenticate", "***"), ("set-cookie", "***"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [("Bearer k", "Bearer ***"), ("Bearer", "Bearer"), ("bearer ", "bearer "), ("k", "***"),
     ("Basic a b", "Basic ***"), ("", "")],
)  # fmt: skip
def test_the_form_of_a_credential_stays(value: str, shown: str) -> None:
    """A scheme without a key is no secret: what was sent wrong can be seen."""
    assert masked("Authorization", value) == shown


def test_an_exchange_without_its_request_cannot_be_recorded() -> None:
    """A bare body has nothing to say what was asked; writing it as a case would invent it."""
    made = exchange()
    with pytest.raises(ValueError, match="without its request"):
        Recorder().exchange(Exchange(case="c", closed=made.closed))
