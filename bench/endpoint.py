"""CPU of the supplier's endpoint per plain answer and per streamed event, beside nginx.

    ./dev bench endpoint [--rounds N] [--seconds S]

One fake engine and one load generator (bench/load, built with gcc) on one core; on the other, in
turn and interleaved, nginx as a plain relay (`proxy_buffering off`, kept connections) and the
endpoint with validation, verification, edits, counters and its access log on. What is compared is
user and system time of the relay's processes, from /proc; the ratio within each round is what
counts.
"""

import argparse
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOAD = Path(__file__).parent / "load"
KEY = "a-key-of-the-bench"
MODEL = "sup-model"
#: Connections on which the fake engine is asked for its counts.
ENGINES: dict[int, http.client.HTTPConnection] = {}


@dataclass(frozen=True)
class Scenario:
    """One kind of load."""

    name: str
    #: What is counted: answers, or events of streams.
    unit: str
    units: int
    #: The engine's chunks in a stream, microseconds between them, and its way of writing.
    control: str
    load: tuple[str, ...]


SCENARIOS = (
    Scenario(
        "plain answers, 64 connections",
        "answer",
        1,
        "n=64&gap=0&mode=0",
        ("-c", "64", "-n", "20000"),
    ),
    Scenario(
        "streams of 64 events, 5 ms apart, 128 at a time",
        "event",
        66,
        "n=64&gap=5000&mode=0",
        ("-s", "-c", "128", "-n", "1500"),
    ),
    Scenario(
        "streams of 64 events, back to back, 8 at a time",
        "event",
        66,
        "n=64&gap=0&mode=0",
        ("-s", "-c", "8", "-n", "3000"),
    ),
)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    for tool in ("gcc", "nginx", "taskset"):
        if shutil.which(tool) is None:
            sys.exit(f"bench/endpoint.py needs {tool}; on Debian: apt install gcc nginx util-linux")
    with contextlib.ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="cheapgpu-bench-"))
        folder = Path(name)
        for tool in ("upstream", "lg"):
            source = str(LOAD / f"{tool}.c")
            subprocess.run(["gcc", "-O2", "-w", "-o", str(folder / tool), source], check=True)
        engine = free_port()
        command = ["taskset", "-c", "1", str(folder / "upstream"), str(engine)]
        stack.enter_context(running(command, engine))
        contestants = {
            "nginx": stack.enter_context(nginx(folder, engine)),
            "endpoint": stack.enter_context(endpoint(folder, engine)),
        }
        for name, (port, pid) in contestants.items():  # first: memory that was used is kept
            slow_streams(folder, engine, name, port, pid)
        for scenario in SCENARIOS:
            compare(folder, engine, contestants, scenario, chosen.rounds)
        for name, (port, _) in contestants.items():
            leaving(engine, name, port)


def compare(
    folder: Path,
    engine: int,
    contestants: dict[str, tuple[int, int]],
    scenario: Scenario,
    rounds: int,
) -> None:
    """Run one scenario in interleaved rounds, and print what each contestant cost."""
    control(engine, scenario.control)
    costs: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        order = list(contestants) if number % 2 else list(reversed(contestants))
        for name in order:
            port, pid = contestants[name]
            cost = measured(folder, port, pid, scenario)
            if number:  # the first round warms up
                costs[name].append(cost)
    floor = costs["nginx"]
    for name, each in costs.items():
        ratios = [cost / least for cost, least in zip(each, floor, strict=True)]
        print(
            f"{scenario.name:50} {name:9} {statistics.median(each):7.1f} us an {scenario.unit:6} "
            f"{statistics.median(ratios):5.2f} x nginx [{min(ratios):.2f}-{max(ratios):.2f}]",
            flush=True,
        )


def measured(folder: Path, port: int, pid: int, scenario: Scenario) -> float:
    """CPU microseconds of a contestant for each unit of one load."""
    before = cpu_seconds(pid)
    command = ["taskset", "-c", "1", str(folder / "lg"), "-p", str(port), "-m", MODEL, "-k", KEY]
    command += [*scenario.load, "-d", "60", "-P", "/v1/chat/completions"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    spent = cpu_seconds(pid) - before
    answers = int(json.loads(told)["ok"])
    wanted = int(scenario.load[scenario.load.index("-n") + 1])
    assert answers == wanted, told
    return spent * 1e6 / (answers * scenario.units)


def slow_streams(folder: Path, engine: int, name: str, port: int, pid: int) -> None:
    """Memory of a thousand streams at once, an event a second each."""
    control(engine, "n=10&gap=1000000&mode=0")
    idle = peak = memory(pid)
    load = [str(folder / "lg"), "-p", str(port), "-m", MODEL, "-k", KEY, "-s", "-c", "1000"]
    load += ["-n", "1000", "-d", "60", "-P", "/v1/chat/completions"]
    with subprocess.Popen(load, stdout=subprocess.PIPE, text=True) as loading:
        while loading.poll() is None:
            time.sleep(0.2)
            peak = max(peak, memory(pid))
        told = json.loads(loading.communicate()[0])
    print(
        f"1,000 streams at once, an event a second            {name:9} {told['ok']} whole, "
        f"{(peak - idle) / 1024:5.1f} MiB over idle, {(peak - idle) / 1000:5.1f} KiB a stream"
    )


def leaving(engine: int, name: str, port: int) -> None:
    """How soon the engine's connection is closed after a buyer has left in mid-stream."""
    waits = {}
    for kind, gap in (("while events flow", 20_000), ("in a silence", 4_000_000)):
        control(engine, f"n=200&gap={gap}&mode=0")
        waits[kind] = statistics.median(left_after(engine, port) for _ in range(7))
    shown = ", ".join(f"{wait:.2f} ms {kind}" for kind, wait in waits.items())
    print(f"buyer gone, engine's connection closed after        {name:9} {shown}")


def left_after(engine: int, port: int) -> float:
    """Milliseconds from a buyer's leaving until the engine sees its connection closed."""
    body = json.dumps(
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": "Hello."}],
            "max_completion_tokens": 500,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    with socket.create_connection(("127.0.0.1", port)) as buyer:
        buyer.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"authorization: Bearer %b\r\ncontent-length: %d\r\n\r\n%b"
            % (KEY.encode(), len(body), body)
        )
        buyer.recv(1)
        time.sleep(0.1)
        left = time.monotonic_ns()
    deadline = left + 7_000_000_000
    while time.monotonic_ns() < deadline:
        closed = int(stats(engine)["lastclose"])
        if closed > left:
            return (closed - left) / 1e6
        time.sleep(0.01)
    return float("inf")


def memory(pid: int) -> int:
    """Resident memory of a process and its children, in KiB."""
    total = 0
    for process in (pid, *children(pid)):
        status = Path(f"/proc/{process}/status").read_text()
        total += int(status.partition("VmRSS:")[2].split()[0])
    return total


def stats(engine: int) -> dict[str, int]:
    """What the fake engine has counted; asked on one connection, for it counts those too."""
    ENGINES.setdefault(engine, http.client.HTTPConnection("127.0.0.1", engine))
    ENGINES[engine].request("GET", "/_stats")
    counted: dict[str, int] = json.loads(ENGINES[engine].getresponse().read())
    return counted


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, its threads and its children, from the scheduler."""
    total = 0.0
    for process in (pid, *children(pid)):
        for task in Path(f"/proc/{process}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0]) / 1e9
    return total


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


@contextlib.contextmanager
def nginx(folder: Path, engine: int) -> Iterator[tuple[int, int]]:
    """The distribution's nginx as a plain relay: its port and its process."""
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(
        f"""
        worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
        events {{ worker_connections 8192; }}
        http {{
            access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
            fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
            keepalive_requests 1000000; client_body_buffer_size 128k;
            upstream engine {{
                server 127.0.0.1:{engine}; keepalive 256; keepalive_requests 1000000;
            }}
            server {{
                listen 127.0.0.1:{port} backlog=4096;
                location / {{
                    proxy_pass http://engine; proxy_http_version 1.1; proxy_buffering off;
                    proxy_set_header Connection ""; proxy_set_header Authorization "Bearer other";
                }}
            }}
        }}
        """
    )
    command = ["taskset", "-c", "0", "nginx", "-p", str(folder), "-c", str(config)]
    with running(command, port) as pid:
        yield port, pid


@contextlib.contextmanager
def endpoint(folder: Path, engine: int) -> Iterator[tuple[int, int]]:
    """`cheapgpu endpoint` as a supplier runs it, its access log in a file."""
    port = free_port()
    command = ["taskset", "-c", "0", str(Path(sys.executable).with_name("cheapgpu")), "endpoint"]
    command += ["--upstream", f"http://127.0.0.1:{engine}/v1/chat/completions", "--model", MODEL]
    command += ["--dialect", "openai", "--key-env", "BENCH_KEY", "--port", str(port)]
    command += ["--ceiling", "65536", "--at-once", "4096"]
    command += ["--access-log", str(folder / "access.log")]
    with running(command, port, env={**os.environ, "BENCH_KEY": KEY}) as pid:
        yield port, pid


@contextlib.contextmanager
def running(command: list[str], port: int, env: dict[str, str] | None = None) -> Iterator[int]:
    """A server for as long as the block lasts, once it listens."""
    process = subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                sys.exit(f"{command[3:5]} did not start: {process.communicate()[1]}")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def control(engine: int, setting: str) -> None:
    """Tell the fake engine how to answer."""
    urllib.request.urlopen(f"http://127.0.0.1:{engine}/_ctl?{setting}").read()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
