"""Nanoseconds per event of the stream verifier, beside decoding without any check and the SDK.

    ./dev bench verifier

Everything is measured in one run, interleaved, and the ratios are what counts: `decode` is
`msgspec.json.decode` of the same data and nothing else, `SDK` the stream decoder of openai-python.
A *stream* is a whole verifier's life of 64 events; a *run* is 2,000 content events of a longer one,
which is where a long answer spends its time.
"""

import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
from openai._streaming import SSEDecoder

from cheapgpu.core.stream_verifier import StreamVerifier

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
WORDS = ["rain", "falls", "when", "warm", "moist", "air", "rises", "and", "cools"]
ROUNDS = 15

Extra = Callable[[int], Any]


def events(count: int, separators: tuple[str, str], extra: Extra) -> list[bytes]:
    """A conforming stream in vLLM's shape, with `count` chunks and the summary and [DONE]."""

    def chunk(number: int, delta: dict[str, Any] | None, finish: str | None = None) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": extra(number),
            "finish_reason": finish,
            "token_ids": None,
        }
        body = {
            "id": "chatcmpl-1b0a9c7e6d5f4a3b8c2d1e0f",
            "object": "chat.completion.chunk",
            "created": 1767225600,
            "model": MODEL,
            "choices": [] if delta is None else [choice],
            "usage": None,
        }
        if delta is None:
            body["usage"] = {
                "prompt_tokens": 14,
                "completion_tokens": count,
                "total_tokens": 14 + count,
            }
        return b"data: " + json.dumps(body, separators=separators).encode() + b"\n\n"

    return [
        chunk(0, {"role": "assistant", "content": ""}),
        *(chunk(n, {"content": " " + WORDS[n % len(WORDS)]}) for n in range(1, count - 1)),
        chunk(count, {}, "stop"),
        chunk(count, None),
        b"data: [DONE]\n\n",
    ]


def alternatives(number: int) -> dict[str, Any]:
    """Log probabilities as they come with `top_logprobs: 5`."""
    five = [
        {"token": f"to{n}", "logprob": -n - 1.5e-5 * (number + 1), "bytes": [116, 111, 48 + n]}
        for n in range(5)
    ]
    return {"content": [{**five[0], "top_logprobs": five}], "refusal": None}


def verify(reads: list[bytes]) -> None:
    """A whole stream through one verifier."""
    verifier = StreamVerifier(model=MODEL, limit=100_000)
    for read in reads:
        verifier.feed(read)
    outcome = verifier.finish("whole").outcome
    assert outcome == "complete", outcome


def decode_only(data: list[bytes]) -> None:
    """The JSON of every event, and nothing else."""
    decode = msgspec.json.decode
    for item in data:
        decode(item)


def sdk(reads: list[bytes]) -> None:
    """What openai-python does with the same bytes: its SSE decoder, then JSON."""

    def source() -> Iterator[bytes]:
        yield from reads

    for event in SSEDecoder().iter_bytes(source()):
        if not event.data.startswith("[DONE]"):
            event.json()


def per_event(contestants: dict[str, Callable[[], object]], count: int) -> dict[str, float]:
    """Median nanoseconds per event of each contestant, interleaved round by round."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    repeat = max(1, 20_000 // count)
    for _ in range(ROUNDS):
        for name, contestant in contestants.items():
            started = time.process_time_ns()
            for _ in range(repeat):
                contestant()
            times[name].append((time.process_time_ns() - started) / repeat / count)
    return {name: statistics.median(each) for name, each in times.items()}


def show(title: str, figures: dict[str, float]) -> None:
    """One line: nanoseconds, and the ratio to decoding alone."""
    base = figures["decode"]
    cells = [f"{name} {ns:6.0f} ns {ns / base:5.2f} x" for name, ns in figures.items()]
    print(f"{title:34} {' | '.join(cells)}")


def open_verifier(reads: list[bytes]) -> Callable[[list[bytes]], None]:
    """Feed a run of content events to a verifier that has seen the beginning of its stream."""

    def run(more: list[bytes]) -> None:
        verifier = StreamVerifier(model=MODEL, limit=100_000)
        for read in reads:
            verifier.feed(read)
        for read in more:
            verifier.feed(read)
        assert not verifier.broken

    return run


def memory(reads: list[bytes]) -> float:
    """Bytes that one open verifier holds, in the middle of a stream."""
    for read in reads[:10]:
        StreamVerifier(model=MODEL, limit=100_000).feed(read)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    held = []
    for _ in range(500):
        verifier = StreamVerifier(model=MODEL, limit=100_000)
        for read in reads[:10]:
            verifier.feed(read)
        held.append(verifier)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / len(held)


def main() -> None:
    """Measure every shape, as streams and as runs, and print the table."""
    shapes: dict[str, tuple[tuple[str, str], Extra]] = {
        "plain content": ((",", ":"), lambda _: None),
        "plain content, spaced JSON": ((", ", ": "), lambda _: None),
        "a number that changes": ((",", ":"), lambda n: n),
        "nested objects that change": (
            (",", ":"),
            lambda n: {"content": [{"token": "x", "logprob": -0.5 - n}]},
        ),
        "five alternatives a token": ((",", ":"), alternatives),
        "a number that changes, spaced": ((", ", ": "), lambda n: n),
    }
    print(f"CPython {sys.version.split()[0]}, msgspec {msgspec.__version__}\n")
    for title, (separators, extra) in shapes.items():
        stream = events(64, separators, extra)
        data = [event[6:-2] for event in stream[:-1]]
        whole = b"".join(stream)
        figures = per_event(
            {
                "decode": partial(decode_only, data),
                "one event per read": partial(verify, stream),
                "one read": partial(verify, [whole]),
                "SDK": partial(sdk, stream),
                "SDK, one read": partial(sdk, [whole]),
            },
            len(stream),
        )
        show(f"stream: {title}", figures)
    print()
    for title, (separators, extra) in shapes.items():
        stream = events(2020, separators, extra)
        run = open_verifier(stream[:10])
        middle = stream[10:2010]
        data = [event[6:-2] for event in middle]
        together = [b"".join(middle[n : n + 64]) for n in range(0, len(middle), 64)]
        figures = per_event(
            {
                "decode": partial(decode_only, data),
                "one event per read": partial(run, middle),
                "64 per read": partial(run, together),
            },
            len(middle),
        )
        show(f"run: {title}", figures)
    held = memory(events(64, (",", ":"), lambda _: None))
    print(f"\nan open verifier holds {held:.0f} bytes")


if __name__ == "__main__":
    main()
