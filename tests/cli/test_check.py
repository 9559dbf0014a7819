"""`cheapgpu check` as its user meets it."""

import base64
import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from cheapgpu.check.cases import CASES
from cheapgpu.cli import run
from cheapgpu.core import examples
from cheapgpu.core.errors import RecordingError
from cheapgpu.core.recording import read_recording
from tests.check.conforming import Endpoint, Script
from tests.check.servers import (
    CERTIFICATE,
    HANG,
    STREAM_HEAD,
    answering,
    chunked,
    served,
    silent,
    unused_port,
)

SCRIPT = Script()
COMMAND = (sys.executable, "-c", "from cheapgpu.cli import main; main()", "check")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a folder and a key of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY", SCRIPT.key)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An endpoint that conforms, at a pace that shows increments and lasts over a second."""
    with served(Endpoint(replace(SCRIPT, pause=0.005))) as url:
        yield f"{url}/v1/chat/completions"


@pytest.fixture(scope="module")
def fast_endpoint() -> Iterator[str]:
    """One that answers at once."""
    with served(Endpoint(SCRIPT)) as url:
        yield f"{url}/v1/chat/completions"


def check(*arguments: str, model: str = SCRIPT.model) -> int:
    """The exit code of `cheapgpu check` with these arguments."""
    return run(["check", *arguments, "--model", model])


def test_conforming_endpoint_gets_exit_code_0(
    endpoint: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The verdict is printed, and the recording is kept under a name that tells when."""
    assert check(endpoint, "--key-env", "KEY") == 0
    out, err = capsys.readouterr()
    assert "CONFORMS" in out
    assert err == ""
    (path,) = tmp_path.glob("run-*.jsonl")
    assert path.name in out
    assert SCRIPT.key.encode() not in path.read_bytes()


def test_verify_says_the_same_of_the_recording(
    endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`cheapgpu verify` of the recording prints the very JSON of the check."""
    code = check(endpoint, "--key-env", "KEY", "-o", "a.jsonl", "--json")
    live = capsys.readouterr().out
    assert run(["verify", "a.jsonl", "--json"]) == code
    assert capsys.readouterr().out == live
    assert json.loads(live)["verdict"] == "conforms"


def test_wrong_answers_get_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    """An endpoint that answers everybody does not conform."""
    body = examples.completion()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    with served(answering(head % len(body) + body)) as url:
        assert check(url, "-o", "a.jsonl", "-q") == 1
    assert capsys.readouterr().out.startswith("DOES NOT CONFORM")


def test_refused_key_is_not_established(
    fast_endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a key that is taken, nothing is established."""
    assert check(fast_endpoint, "-o", "a.jsonl", "-q") == 3
    assert capsys.readouterr().out.startswith("NOT ESTABLISHED")


def test_key_from_a_file(fast_endpoint: str, tmp_path: Path) -> None:
    """A key file may end with a line end."""
    (tmp_path / "key").write_text(f"{SCRIPT.key}\n")
    check(fast_endpoint, "--key-file", "key", "-o", "a.jsonl", "-q")
    first = read_recording((tmp_path / "a.jsonl").read_bytes()).exchanges[0]
    assert first.head is not None
    assert first.head.status == 200


# --- wrong use ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ftp://x/"], "URL: its scheme is 'ftp'"),
        (["http://x/", "--key-env", "UNSET"], "that it names is not set; give its name"),
        (["http://x/", "--key-env", "EMPTY"], "that it names is empty; put the key into it"),
        (["http://x/", "--key-env", "SPACED"], "key: is empty, or has a space"),
        (
            ["http://x/", "--key-file", "gone"],
            "--key-file: No such file or directory; give",
        ),
        (["http://x/", "--key-file", "long"], "--key-file: the file is too long"),
        (["http://x/", "--key-env", "two words"], "give its name, not the key"),
        (["http://x/", "--key-file", "two words"], "give a file's name, not the key"),
        (["http://x/", "two words"], "it got more arguments than it takes"),
        (["http://x/", "--tokenizer", "gone"], "--tokenizer: gone: no such file"),
        (["http://x/", "--key-file", "lines"], "key: is empty, or has a space, a line break"),
        (["http://x/", "--key-file", "k", "--key-env", "KEY"], "exclude each other"),
        (["http://x/", "-o", "old.jsonl"], "-o: old.jsonl exists"),
        (["http://x/", "-o", "gone/a.jsonl"], "-o: gone/a.jsonl: No such file"),
        (["https://x/", "--ca", "gone.pem"], "--ca: gone.pem: No such file"),
        (["http://x/", "--budget", "0"], "budget: is 0"),
        (["http://x/", "--timeout", "nan"], "timeout: is nan"),
        (["http://x/", "--tokens", "5"], "tokens: is 5"),
        (["http://x/", "--ceiling", "0"], "ceiling: "),
        (["http://x/", "--concurrency", "0"], "concurrency: is 0"),
        (["http://x/", "--header", "two words"], "--header: a field has no colon"),
        (["http://x/", "--header", "Host: two words"], "header: Host is set by the check itself"),
        (["http://x/", "--header", "X-A: two words\a"], "header: the value of X-A"),
        (["http://x/", "-q", "-v"], "exclude each other"),
        ([], "Missing argument"),
    ],
)
def test_wrong_use_gets_exit_code_2_and_sends_nothing(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What cannot be meant is refused before anything is sent, with the option's name."""
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("SPACED", "two words")
    (tmp_path / "long").write_text("k" * 9000)
    (tmp_path / "lines").write_text("one\ntwo\n")
    (tmp_path / "old.jsonl").write_text("precious")
    assert check(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "two words" not in err
    assert (tmp_path / "old.jsonl").read_text() == "precious"
    assert not list(tmp_path.glob("run-*"))


# --- what is asked -------------------------------------------------------------------------------


def test_dry_run_lists_the_requests_and_sends_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each case stands there with what must come back and its tokens; no file is made."""
    url = f"http://127.0.0.1:{unused_port()}/v1"
    assert check(url, "--key-env", "KEY", "--dry-run") == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert [line.split()[1] for line in lines[1 : len(CASES) + 1]] == [one.name for one in CASES]
    assert f"{len(CASES)} requests to {url}" in out
    assert f"at most {sum(one.tokens for one in CASES)} completion tokens" in out
    assert lines[-1] == "nothing was sent"
    assert err == ""
    assert list(tmp_path.iterdir()) == []


def test_dry_run_shows_the_bytes_that_would_be_sent(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json every request is there, its key masked; with -v each body stands in the list."""
    arguments = ["http://127.0.0.1:1/v1", "--key-env", "KEY", "--dry-run", "--only", "refuse/n"]
    assert check(*arguments, "--header", "X-Gate: gate-0123456789", "--json") == 0
    out = capsys.readouterr().out
    (case,) = json.loads(out)["cases"]
    assert (case["case"], case["calls_for"], case["tokens"]) == ("with-n", "400 or 422", 1)
    assert b'"n":1' in base64.b64decode(case["request"]["body_base64"])
    assert ["X-Gate", "***"] in case["request"]["headers"]
    assert SCRIPT.key not in out
    assert "gate-0123456789" not in out
    assert check(*arguments, "-v") == 0
    assert '"n":1' in capsys.readouterr().out


def test_only_what_the_chosen_rules_need_is_sent(fast_endpoint: str, tmp_path: Path) -> None:
    """A run that looks at a few rules sends the requests that feed them, and no others."""
    assert check(fast_endpoint, "--key-env", "KEY", "-o", "a.jsonl", "--only", "auth/*", "-q") == 0
    exchanges = read_recording((tmp_path / "a.jsonl").read_bytes()).exchanges
    assert {exchange.credential for exchange in exchanges} == {"wrong", "none"}


def test_header_is_sent_and_never_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A field that is given reaches the endpoint; its value is in no output and no file."""
    seen: list[bytes] = []
    secret = "gate-0123456789"
    with served(
        answering(f"HTTP/1.1 401 {secret}\r\nx-echo: {secret}\r\n\r\n{secret}".encode(), seen=seen)
    ) as url:
        arguments = ("--header", f"X-Gate: {secret}", "--header", "X-Version:2", "-o", "a.jsonl")
        assert check(url, *arguments, "-v", "--html", "a.html", "--only", "auth/*") in (0, 3)
    assert all(b"X-Gate: gate-0123456789\r\nX-Version: 2\r\n" in request for request in seen)
    out, err = capsys.readouterr()
    for text in (out, err, (tmp_path / "a.jsonl").read_text(), (tmp_path / "a.html").read_text()):
        assert secret not in text


def test_concurrency_says_how_many_streams_are_asked_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With --concurrency 5 five streams are at once; with 1 there are two, one after another."""
    names = {}
    for number in ("1", "5"):
        assert check("http://127.0.0.1:1/", "--dry-run", "--concurrency", number) == 0
        names[number] = capsys.readouterr().out.count("concurrent-")
    assert names == {"1": 2, "5": 5}


def test_ceiling_is_asked_over(fast_endpoint: str, tmp_path: Path) -> None:
    """With --ceiling one request asks for one token more, and the recording says what is known."""
    arguments = ("--key-env", "KEY", "--ceiling", "4096", "-o", "a.jsonl", "-q")
    assert check(fast_endpoint, *arguments, "--only", "refuse/limit-*") == 0
    exchanges = read_recording((tmp_path / "a.jsonl").read_bytes()).exchanges
    over = next(one for one in exchanges if one.case == "limit-over-ceiling")
    assert over.ceiling == 4096
    assert over.request is not None
    assert b'"max_completion_tokens":4097' in over.request.body


# --- endpoints that cannot be asked ---------------------------------------------------------------


def test_unreachable_endpoint_gets_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what failed, where, and what to try; the recording is whole."""
    port = unused_port()
    assert check(f"http://127.0.0.1:{port}/v1", "-o", "a.jsonl") == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"cheapgpu check: 127.0.0.1:{port} cannot be reached: connection refused; "
        "check that the endpoint runs, and its port\n"
        "  the recording is in a.jsonl\n"
    )
    assert len(read_recording((tmp_path / "a.jsonl").read_bytes()).exchanges) == len(CASES)


def test_unreachable_endpoint_has_json_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the document is printed, whatever was seen."""
    url = f"http://127.0.0.1:{unused_port()}/v1"
    assert check(url, "-o", "a.jsonl", "--json") == 3
    assert json.loads(capsys.readouterr().out)["verdict"] == "not established"


def test_hanging_endpoint_is_left_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    """An endpoint that says nothing costs two waits, and gets one message."""
    with served(silent) as url:
        began = time.monotonic()
        assert check(f"{url}/v1", "-o", "a.jsonl", "--timeout", "0.2") == 3
    assert time.monotonic() - began < 10
    out, err = capsys.readouterr()
    assert out == ""
    assert "is given up: 2 requests in a row failed: no answer within 0.2 s" in err


def test_head_and_then_silence_ends_with_the_budget(capsys: pytest.CaptureFixture[str]) -> None:
    """An endpoint that answers with a head alone is left when the time of the run is over."""
    with served(answering(STREAM_HEAD, HANG)) as url:
        assert check(f"{url}/v1", "-o", "a.jsonl", "--budget", "0.5") == 3
    assert "the 0.5 s of the run are over" in capsys.readouterr().err


def test_untrusted_certificate_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A certificate of one's own needs --ca; with it the endpoint is asked."""
    with served(Endpoint(SCRIPT), secure=True) as url:
        assert check(f"{url}/v1", "--key-env", "KEY", "-o", "a.jsonl") == 3
        err = capsys.readouterr().err
        assert "cannot be reached: the certificate is not accepted: self" in err
        assert "--ca FILE" in err
        check(f"{url}/v1", "--key-env", "KEY", "-o", "b.jsonl", "--ca", str(CERTIFICATE), "-q")
    exchanges = read_recording((tmp_path / "b.jsonl").read_bytes()).exchanges
    assert all(exchange.head is not None for exchange in exchanges)


def test_refused_long_question_points_to_the_ceiling(capsys: pytest.CaptureFixture[str]) -> None:
    """Where a further question asks for more than is admitted, the remedy is named."""
    with served(Endpoint(replace(SCRIPT, ceiling=300))) as url:
        check(f"{url}/v1", "--key-env", "KEY", "-o", "a.jsonl")
    assert "--ceiling" in capsys.readouterr().err


# --- hints ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "key", "hint"),
    [
        (b"401 No", ["--key-env", "KEY"], "with the key got 401; is the key right (--key-env)?"),
        (b"403 No", [], "without a key got 403; give the key with --key-env"),
        (b"404 No", [], "every answer is 404; is URL the full inference_url?"),
        (
            b"308 No\r\nlocation: /v2?key=1",
            [],
            "none is followed; if it is meant to be asked",
        ),
        (b"302 No\r\nlocation: http://[", [], "every answer is a redirect, and none is followed\n"),
    ],
)
def test_likely_slip_is_named(
    head: bytes, key: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where every answer says the same, the slip behind it is named; no query is shown."""
    with served(answering(b"HTTP/1.1 " + head + b"\r\ncontent-length: 0\r\n\r\n")) as url:
        check(
            f"{url}/v1", *key, "-o", "a.jsonl", "-q", "--only", "stream/status", "--only", "auth/*"
        )
        err = capsys.readouterr().err
    assert hint in err
    assert "key=1" not in err
    assert b"/v2" not in head or f"give URL as {url}/v2\n" in err


# --- tokenizers -----------------------------------------------------------------------------------


def test_tokenizer_counts_again_in_every_command(
    fast_endpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --tokenizer the tokens are counted, alike live and from the recording."""
    write_tokenizer(tmp_path / "tokenizer.json")
    rule = ("--only", "honesty/*", "--tokenizer", "tokenizer.json")
    assert check(fast_endpoint, "--key-env", "KEY", "-o", "a.jsonl", "--json", *rule) == 3
    live = capsys.readouterr().out
    shown = {one["id"]: one for one in json.loads(live)["rules"]}
    assert shown["honesty/tokens-as-counted"]["outcome"] == "pass"
    assert run(["verify", "a.jsonl", "--json", *rule]) == 3
    assert capsys.readouterr().out == live
    assert run(["report", "a.jsonl", "-v", *rule]) == 0
    assert "honesty/tokens-as-counted" in capsys.readouterr().out
    assert run(["verify", "a.jsonl", "-v", "--only", "honesty/tokens-as-counted"]) == 3
    assert "no exchange called for it" in capsys.readouterr().out


def write_tokenizer(path: Path) -> None:
    """A tokenizer whose tokens are words and marks, as the scripted endpoint counts them."""
    path.write_text(
        json.dumps(
            {
                "version": "1.0",
                "added_tokens": [],
                "pre_tokenizer": {"type": "Whitespace"},
                "model": {"type": "WordLevel", "vocab": {"?": 0}, "unk_token": "?"},
            }
        )
    )


def test_file_that_is_no_tokenizer_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, before anything is judged."""
    (tmp_path / "t.json").write_text("{}")
    assert run(["verify", "a.jsonl", "--tokenizer", "t.json"]) == 2
    assert "--tokenizer: t.json: not a tokenizer.json" in capsys.readouterr().err


# --- faults of our own ----------------------------------------------------------------------------


def test_full_disk_ends_the_run(
    fast_endpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recording that cannot be written on ends the run: nothing is judged without it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        assert check(fast_endpoint, "--key-env", "KEY", "-o", "a.jsonl") == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    out, err = capsys.readouterr()
    assert out == ""
    assert "-o: a.jsonl: File too large; the run was ended" in err
    with pytest.raises(RecordingError, match="cut short"):
        read_recording((tmp_path / "a.jsonl").read_bytes())


def test_fault_of_the_program_says_where_the_recording_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault that nobody foresaw ends in 70, and what was recorded is not lost."""

    async def fail(*_: object) -> None:
        raise RuntimeError("a private matter")

    monkeypatch.setattr("cheapgpu.cli.check.run_plan", fail)
    assert check("http://127.0.0.1:9/", "-o", "a.jsonl") == 70
    err = capsys.readouterr().err
    assert "what was recorded is in a.jsonl" in err
    assert "a private matter" not in err


# --- interruptions --------------------------------------------------------------------------------


def started(url: str, path: Path) -> subprocess.Popen[bytes]:
    """A check of an endpoint that hangs within its first answer, once that has begun."""
    process = subprocess.Popen(
        [*COMMAND, url, "--model", "m", "-o", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    end = time.monotonic() + 30
    while not (path.exists() and b'"kind": "read"' in path.read_bytes()):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_check_closes_its_recording(tmp_path: Path, number: signal.Signals) -> None:
    """SIGINT and SIGTERM end with 130 and leave a recording that can be judged."""
    path = tmp_path / "a.jsonl"
    with served(answering(STREAM_HEAD, chunked(examples.RAIN), HANG)) as url:
        process = started(url, path)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert b"interrupted" in err
    assert b"Traceback" not in err
    assert b"CONFORMS" not in out
    first, *others = read_recording(path.read_bytes()).exchanges
    assert first.closed.how == "cancelled"
    assert {exchange.closed.how for exchange in others} == {"cancelled"}


def test_check_is_interrupted_while_it_judges(tmp_path: Path) -> None:
    """Ctrl-C ends a check at once while an answer that takes long to judge is judged."""
    script = (
        "import sys, time; import cheapgpu.check.run as one; from cheapgpu.cli import main\n"
        "judge = one.judge\n"
        "def slow(exchange, **more):\n"
        "    if not exchange.reads: return judge(exchange, **more)\n"
        "    print('judging', file=sys.stderr, flush=True)\n"
        "    time.sleep(600)\n"
        "one.judge = slow; main()"
    )
    path = tmp_path / "a.jsonl"
    answer = STREAM_HEAD + chunked(examples.RAIN, examples.DONE) + b"0\r\n\r\n"
    with served(answering(answer)) as url:
        process = subprocess.Popen(
            [sys.executable, "-c", script, "check", url, "--model", "m", "-o", path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        assert process.stderr.readline() == b"judging\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert b"interrupted" in err
    assert b"CONFORMS" not in out
    first = read_recording(path.read_bytes()).exchanges[0]
    assert first.closed.how in ("length", "chunked-end")


def test_interrupted_check_of_an_endless_stream_keeps_its_exit_code(tmp_path: Path) -> None:
    """What is judged within native code when the program ends does not bring it down."""
    body = chunked(b'data: {"id":1,"choices":[{"delta":{}}]}\n\n' * 100_000)
    path = tmp_path / "a.jsonl"
    with served(answering(STREAM_HEAD, body, b"0\r\n\r\n")) as url:
        process = started(url, path)
        end = time.monotonic() + 30
        while b'"kind": "closed"' not in path.read_bytes():
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err.startswith(b"cheapgpu check: interrupted\n")
    assert b"FATAL" not in err
    assert b"CONFORM" not in out


def test_killed_check_leaves_a_file_that_is_refused(tmp_path: Path) -> None:
    """After SIGKILL the file lacks its end, and `verify` judges nothing of it."""
    path = tmp_path / "a.jsonl"
    with served(answering(STREAM_HEAD, chunked(examples.RAIN), HANG)) as url:
        process = started(url, path)
        process.kill()
        process.communicate(timeout=30)
    with pytest.raises(RecordingError, match="cut short"):
        read_recording(path.read_bytes())
    assert run(["verify", str(path)]) == 2


# --- progress -------------------------------------------------------------------------------------


def on_a_terminal(url: str, folder: Path) -> list[str]:
    """The lines that a check writes to a terminal on standard error."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, url, "--model", SCRIPT.model, "--key-env", "KEY", "-q"],
        stdout=subprocess.DEVNULL,
        stderr=child,
        cwd=folder,
    )
    os.close(child)
    shown = b""
    with suppress(OSError):  # which says on Linux that the last writer has gone
        while piece := os.read(parent, 65_536):
            shown += piece
    os.close(parent)
    process.wait(30)
    return shown.decode().splitlines()


def test_progress_is_shown_on_a_terminal(fast_endpoint: str, tmp_path: Path) -> None:
    """On a terminal each case has a line on standard error, with what it came to."""
    lines = on_a_terminal(fast_endpoint, tmp_path)
    assert any("stream-short" in line and "200 complete" in line for line in lines)
    assert any("no-key" in line and "401 refused" in line for line in lines)


def test_cases_that_were_left_out_are_no_progress(tmp_path: Path) -> None:
    """Where a run stops, only what was asked is shown, and why it stopped."""
    lines = on_a_terminal(f"http://127.0.0.1:{unused_port()}/v1", tmp_path)
    assert "stream-short" in lines[0]
    assert lines[0].endswith("connection refused")
    assert lines[1].startswith("cheapgpu check: 127.0.0.1")
    assert len(lines) == 3


def test_no_progress_without_a_terminal(
    fast_endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where standard error is no terminal, nothing is written to it."""
    check(fast_endpoint, "--key-env", "KEY", "-o", "a.jsonl", "-q")
    assert capsys.readouterr().err == ""
