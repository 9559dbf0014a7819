"""Runs to report on: recordings of the corpus, and the rules' own examples put together."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from cheapgpu.cli.rules import judged_example
from cheapgpu.core.exchange import Closed, Exchange, Head, Read
from cheapgpu.core.recording import read_recording
from cheapgpu.core.rules import BY_ID, RULES, Rule
from cheapgpu.core.verify import verify
from cheapgpu.report.run import Run

DATA = Path(__file__).parents[1] / "data"
CORPUS = DATA / "corpus"


def run_of(*exchanges: Exchange) -> Run:
    """What these exchanges prove, as `check` would report it."""
    return Run(
        report=verify(exchanges, count_tokens=lambda text: len(text.split())),
        exchanges=exchanges,
        target="https://gpu7.example/v1/chat/completions",
        source="run.jsonl",
        about=("model example-local-model",),
        commands=(("cheapgpu verify run.jsonl", "judge again, without the network"),),
    )


def recorded(name: str) -> Run:
    """A recording of the corpus, by its path below it."""
    recording = read_recording((CORPUS / name).read_bytes())
    return Run(
        report=verify(recording.exchanges, started=recording.started),
        exchanges=recording.exchanges,
        target=recording.target,
        source=name,
        about=(f"recorded by {recording.tool}",),
    )


def example(rule: str, case: str = "example", *, good: bool = False) -> Exchange:
    """The good or the bad example of a rule, as the exchange of a case."""
    known = BY_ID[rule]
    *_, exchange = judged_example(known, known.good if good else known.bad).exchanges
    return replace(exchange, case=case)


def bare(body: bytes, **head: str) -> Exchange:
    """A streamed answer of this body, without the request that called for it."""
    headers = {"content-type": "text/event-stream"} | head
    return Exchange(
        case="hostile",
        sent=0.0,
        head=Head(t=0.1, status=200, headers=tuple(headers.items())),
        reads=(Read(t=0.2, at=0, data=body),),
        closed=Closed(t=0.3, how="chunked-end"),
    )


def staged_cases(rule: Rule, *, good: bool) -> list[Exchange]:
    """The exchanges of a rule's example, each as a case of its own."""
    name = rule.id.replace("/", "-")
    *before, last = judged_example(rule, rule.good if good else rule.bad).exchanges
    return [*(replace(one, case=f"{name}-before") for one in before), replace(last, case=name)]


@cache
def everything_wrong() -> Run:
    """An endpoint that breaks every rule, each in a case of its own."""
    return run_of(*(one for rule in RULES for one in staged_cases(rule, good=False)))


@cache
def everything_right() -> Run:
    """An endpoint that keeps every rule that can be kept without reporting an error."""
    failing = ("stream/error-schema", "stream/error-is-final")
    return run_of(
        *(one for rule in RULES if rule.id not in failing for one in staged_cases(rule, good=True))
    )


@cache
def nothing_established() -> Run:
    """An endpoint that is wrong nowhere and shows no success either."""
    streamed = example("stream/json", good=True)
    silent = replace(streamed, head=None, reads=(), closed=Closed(t=30.0, how="timeout"))
    cut = replace(
        example("stream/done-present", "stream-cut"), closed=Closed(t=120.0, how="timeout")
    )
    return run_of(
        example("stream/error-schema", "stream-short", good=True),
        example("auth/missing-refused", "no-key", good=True),
        replace(silent, case="stream-usage"),
        cut,
    )


def all_runs() -> Iterator[tuple[str, Run]]:
    """Every recording of the corpus, and every run of this file."""
    for path in sorted(CORPUS.rglob("*.jsonl")):
        name = str(path.relative_to(CORPUS))
        yield name, recorded(name)
    yield "everything wrong", everything_wrong()
    yield "everything right", everything_right()
    yield "nothing established", nothing_established()
