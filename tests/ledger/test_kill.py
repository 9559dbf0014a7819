"""kill -9, again and again, on one file: what was acknowledged is there, once, and adds up."""

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from cheapgpu.ledger.answers import Credited
from cheapgpu.ledger.check import check
from cheapgpu.ledger.clock import steady_clock
from cheapgpu.ledger.facts import Balance, Closure
from cheapgpu.ledger.ids import uuid7
from cheapgpu.ledger.sqlite_store import open_sqlite
from cheapgpu.ledger.store import Store
from tests.ledger.facts import CHARGE, HOLD, a_credit, furnished, run

#: Funds for a life of the driver, which opens at most half as many attempts as it says lines.
MOST_LINES = 800
FUNDS = MOST_LINES * HOLD


class History:
    """What was acknowledged, over all lives of the process."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, ...]] = []

    def ids(self, word: str) -> list[str]:
        """The attempts of which a word was said."""
        return [line[1] for line in self.lines if line[0] == word]


def lived(path: Path, seed: int, acknowledged: int) -> list[tuple[str, ...]]:
    """Run the driver until it has said so many lines, kill it, and return all that it said."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(("src", "."))}
    command = [sys.executable, "tests/ledger/crash_driver.py", str(path), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(acknowledged)]
        process.kill()
        lines += process.stdout.readlines()
    assert process.returncode == -9, "the driver ended by itself"
    whole = [line for line in lines if line.endswith(b"\n")]
    return [tuple(line.decode().split()) for line in whole]


async def closures_of(store: Store, ids: set[str]) -> dict[str, Closure | None]:
    """The closures of attempts, each of which must be there."""
    found = {}
    for attempt_id in ids:
        attempt = await store.attempt(attempt_id)
        assert attempt is not None, f"{attempt_id} was acknowledged, and is lost"
        found[attempt_id] = attempt.closure
    return found


async def look(path: Path, history: History) -> None:
    """Open the file after a crash: nothing acknowledged is missing, and all money is somewhere."""
    store = await open_sqlite(path)
    opened, settled = history.ids("o"), history.ids("s")
    assert max(Counter(opened).values()) == 1
    assert max(Counter(settled).values(), default=0) <= 1, "settled twice"
    closures = await closures_of(store, set(opened))
    for word, attempt_id, *said in history.lines:
        closure = closures.get(attempt_id) if word in "saz" else None
        if word in "sa":
            assert closure is not None
            assert (closure.kind, closure.charge) == ("settle", CHARGE)
            assert said == [str(CHARGE)]
        elif word == "z":
            assert closure is not None
            assert [closure.reason] == said
    balances = [await store.balance(account) for account in ("ann", "sue", "operator", "outside")]
    assert sum(balance.posted for balance in balances if balance) == 0
    ann = balances[0]
    assert isinstance(ann, Balance)
    assert ann.available >= 0
    now_us = steady_clock()()
    more = a_credit(credit_id=uuid7(now_us, bytes(10)), amount=FUNDS, made_us=now_us)
    assert await store.credit(more) == Credited(again=False)
    await store.close()
    assert check(path, steady_clock()(), grace_us=60_000_000) == ()


def kill_again_and_again(path: Path, lives: int, seed: int) -> None:
    """Let the driver live and die on one file, and look at it after each death."""

    async def furnish() -> None:
        store = await open_sqlite(path)
        await furnished(store, FUNDS)
        await store.close()

    run(furnish())
    chance, history = random.Random(seed), History()
    for life in range(lives):
        said = lived(path, life, chance.randrange(2, MOST_LINES))
        history.lines += [line for line in said if line[0] != "ready"]
        if history.ids("o"):
            run(look(path, history))
    assert {"o", "s", "z", "w"} <= {line[0] for line in history.lines}


def test_kill_9(tmp_path: Path) -> None:
    """Four lives: no acknowledged opening or settlement is lost, nothing is there twice."""
    kill_again_and_again(tmp_path / "ledger.db", 4, 1)


@pytest.mark.long
def test_kill_9_for_long(tmp_path: Path) -> None:
    """Sixty lives on one file."""
    kill_again_and_again(tmp_path / "ledger.db", 60, 2)
