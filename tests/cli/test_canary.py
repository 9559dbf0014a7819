"""A key is written nowhere, however hard an endpoint tries to have it written."""

import asyncio
import json
from pathlib import Path

import pytest

from cheapgpu.cli import run
from tests.check.servers import LAST_CHUNK, chunked, read_request, served
from tests.cli.commands import cheapgpu

KEY = "canary-0123456789-abcdefghij"
REPORTS = {
    "--html": "report.html",
    "--junit": "junit.xml",
    "--sarif": "report.sarif",
    "--json-file": "report.json",
    "--md": "report.md",
    "--badge": "badge.json",
}


def echoes(request: bytes) -> bytes:
    """An answer with the key in every place that has room for one."""
    stream = b'"stream": true' in request or b'"stream":true' in request
    head = f"x-echo: {KEY}\r\nset-cookie: k={KEY}\r\nwww-authenticate: Bearer {KEY}\r\n"
    if b"authorization: bearer" not in request.lower():
        body = json.dumps({"error": {"message": KEY, "type": KEY, "param": KEY, "code": KEY}})
        first = f"HTTP/1.1 401 {KEY}\r\ncontent-type: application/json; k={KEY}\r\n"
        return f"{first}{head}content-length: {len(body)}\r\n\r\n{body}".encode()
    chunk = {
        "id": KEY,
        "object": KEY,
        "created": KEY,
        "model": KEY,
        KEY: KEY,
        "choices": [{"index": 0, "delta": {"role": KEY, "content": KEY}, "finish_reason": KEY}],
        "usage": {"prompt_tokens": KEY, KEY: 1},
    }
    if not stream:
        body = json.dumps(chunk)
        first = f"HTTP/1.1 200 OK\r\ncontent-type: text/{KEY}\r\ncontent-encoding: {KEY}\r\n"
        return f"{first}{head}content-length: {len(body)}\r\n\r\n{body}".encode()
    events = f"event: {KEY}\nid: {KEY}\n: {KEY}\ndata: {json.dumps(chunk)}\n\ndata: {KEY}\n\n"
    sent = events.encode()
    half = sent.index(KEY.encode()) + 5
    first = f"HTTP/1.1 200 {KEY}\r\ncontent-type: text/event-stream; k={KEY}\r\n"
    fields = f"{first}{head}transfer-encoding: chunked\r\n\r\n".encode()
    return fields + chunked(sent[:half], sent[half:]) + LAST_CHUNK


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request with the key that came."""
    writer.write(echoes(await read_request(reader)))
    await writer.drain()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a check of such an endpoint leaves behind, its output and its summary included."""
    path = tmp_path_factory.mktemp("canary")
    options = [part for name, file in REPORTS.items() for part in (name, str(path / file))]
    changes = {"KEY": KEY, "GITHUB_STEP_SUMMARY": str(path / "summary.md")}
    with served(echo) as url:
        done = cheapgpu(
            *("check", f"{url}/v1", "--model", "m", "--key-env", "KEY", "-v", "--strict"),
            *("-o", str(path / "run.jsonl"), "--budget", "60", *options),
            changes=changes,
        )
    assert done.returncode == 1, done.stderr
    (path / "stdout").write_bytes(done.stdout)
    (path / "stderr").write_bytes(done.stderr)
    return path


def test_no_output_of_a_check_has_the_key(folder: Path) -> None:
    """Terminal, recording, and every report: the key is looked for in all that was written."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert files.keys() >= {*REPORTS.values(), "run.jsonl", "summary.md", "stdout"}
    for name, data in files.items():
        assert KEY.encode() not in data, name
        assert data or name == "stderr", name


def test_the_masked_key_is_what_was_judged(folder: Path) -> None:
    """The canary was sent back, and stars stand in its place: the test looks at what it means."""
    assert b"*" * len(KEY) in (folder / "report.json").read_bytes()


@pytest.mark.parametrize("command", ["verify", "report", "diff"])
def test_no_command_that_reads_the_recording_finds_the_key(
    command: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not in the recording cannot be shown again."""
    recording = str(folder / "run.jsonl")
    files = [recording, recording] if command == "diff" else [recording]
    options = [part for name, file in REPORTS.items() for part in (name, str(tmp_path / file))]
    run([command, *files, *([] if command == "diff" else options)])
    run([command, *files, *(["--json", "-"] if command == "report" else ["--json"])])
    captured = capsys.readouterr()
    assert KEY not in captured.out + captured.err
    for path in tmp_path.iterdir():
        assert KEY.encode() not in path.read_bytes(), path.name
