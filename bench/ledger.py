"""Attempts per second and CPU per attempt of the ledger, every answer durable.

    ./dev bench ledger [--seconds S] [--rounds N] [--folder DIR]

An attempt is an opening and a settlement, each awaited: two durable commits for its caller, who
starts the next one then. SQLite (write-ahead log, synchronous=FULL, on the disk of DIR) and the
in-memory stand-in take turns in one run, on the same event loop. CPU is that of the whole process,
user and system: the callers, the writer's thread and SQLite. The file passes the ledger's check.
"""

import argparse
import asyncio
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from cheapgpu.ledger.answers import Closed, Opened
from cheapgpu.ledger.check import check
from cheapgpu.ledger.clock import SECOND, Clock, steady_clock
from cheapgpu.ledger.facts import Account, Admission, Credit, Outcome
from cheapgpu.ledger.ids import uuid7
from cheapgpu.ledger.memory import MemoryStore
from cheapgpu.ledger.sqlite_store import open_sqlite
from cheapgpu.ledger.store import Store

CONCURRENCY = (1, 32, 256)
USAGE = '{"prompt_tokens":80,"completion_tokens":40,"total_tokens":120}'


@dataclass
class Measured:
    """What one turn gave."""

    attempts: int
    #: Of the whole turn.
    seconds: float
    cpu_seconds: float
    #: Of each opening, in seconds.
    waits: list[float]


def main() -> None:
    """Measure, and print a line for each store and concurrency."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    chosen = parser.parse_args()
    print(f"CPython {platform.python_version()}, SQLite {sqlite3.sqlite_version}\n")
    with tempfile.TemporaryDirectory(prefix=".bench-ledger-", dir=chosen.folder) as folder:
        asyncio.run(compare(Path(folder) / "ledger.db", chosen.seconds, chosen.rounds))


async def compare(path: Path, seconds: float, rounds: int) -> None:
    """Let the stores take turns at every concurrency."""
    clock = steady_clock()
    stores: dict[str, Store] = {
        "SQLite FULL": await open_sqlite(path, clock),
        "in memory": MemoryStore(clock),
    }
    for store in stores.values():
        await furnish(store, clock)
    for callers in CONCURRENCY:
        turns: dict[str, list[Measured]] = {name: [] for name in stores}
        for number in range(rounds + 1):
            for name, store in stores.items():
                turn = await measure(store, clock, callers, seconds)
                if number:  # the first round warms up
                    turns[name].append(turn)
        for name, measured in turns.items():
            show(name, callers, measured)
    for store in stores.values():
        await store.close()
    faults = check(path, clock())
    assert not faults, faults
    print("\nthe file passes the ledger's check")


async def furnish(store: Store, clock: Clock) -> None:
    """Register a buyer with money enough, and a supplier."""
    await store.add_account(Account(account_id="ann", kind="buyer"))
    await store.add_account(Account(account_id="sue", kind="supplier"))
    made_us = clock()
    await store.credit(
        Credit(
            credit_id=uuid7(made_us, os.urandom(10)),
            account_id="ann",
            amount=10**15,
            reason="bench",
            made_us=made_us,
        )
    )


async def measure(store: Store, clock: Clock, callers: int, seconds: float) -> Measured:
    """Keep so many callers busy for so long."""
    waits: list[float] = []
    began, cpu = time.perf_counter(), time.process_time()
    until = began + seconds
    counts = await asyncio.gather(*(call(store, clock, until, waits) for _ in range(callers)))
    took, used = time.perf_counter() - began, time.process_time() - cpu
    return Measured(sum(counts), took, used, waits)


async def call(store: Store, clock: Clock, until: float, waits: list[float]) -> int:
    """Open and settle, one attempt after the other."""
    count = 0
    while (began := time.perf_counter()) < until:
        admission = an_admission(clock())
        answer = await store.open_attempt(admission)
        waits.append(time.perf_counter() - began)
        assert isinstance(answer, Opened)
        assert isinstance(await store.settle(an_outcome(admission)), Closed)
        count += 1
    return count


def an_admission(now_us: int) -> Admission:
    """A usual attempt."""
    return Admission(
        attempt_id=uuid7(now_us, os.urandom(10)),
        mode="charge",
        buyer_id="ann",
        supplier_id="sue",
        key_id="key-1",
        idempotency_key=None,
        body_sha256=None,
        public_model="small",
        supplier_model="sup/small",
        endpoint_id="sue-1",
        price_in=2_000,
        price_out=5_000,
        fee_bps=1_000,
        policy_version="1",
        in_ceiling=4_096,
        out_ceiling=512,
        opened_us=now_us,
        deadline_us=now_us + 300 * SECOND,
        buyer_request_sha256=b"b" * 32,
        supplier_request_sha256=b"s" * 32,
        salt=b"0" * 32,
    )


def an_outcome(admission: Admission) -> Outcome:
    """A complete answer."""
    now_us = admission.opened_us
    return Outcome(
        attempt_id=admission.attempt_id,
        outcome="complete",
        status=200,
        finish_reason="stop",
        usage_json=USAGE,
        in_tokens=80,
        out_tokens=40,
        sent_us=now_us,
        head_us=now_us,
        first_text_us=now_us,
        ended_us=now_us,
        events=42,
        body_bytes=9_000,
        supplier_body_sha256=b"x" * 32,
        buyer_stream_sha256=b"y" * 32,
        delivered=True,
    )


def show(name: str, callers: int, turns: list[Measured]) -> None:
    """Print the medians of one store at one concurrency."""
    rate = statistics.median(turn.attempts / turn.seconds for turn in turns)
    cpu = statistics.median(turn.cpu_seconds / turn.attempts * 1e6 for turn in turns)
    waits = sorted(wait for turn in turns for wait in turn.waits)
    half, most = waits[len(waits) // 2] * 1e3, waits[len(waits) * 99 // 100] * 1e3
    print(
        f"{name:<12} {callers:>4} at once  {rate:>7.0f} attempts/s  {cpu:>6.1f} µs CPU"
        f"  opening p50 {half:>6.2f} ms  p99 {most:>6.2f} ms",
        flush=True,
    )


if __name__ == "__main__":
    main()
