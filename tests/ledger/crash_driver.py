"""Works on a ledger until it is killed, and says on its output what was acknowledged to it.

    python tests/ledger/crash_driver.py LEDGER SEED

`o ID` opened · `s ID CHARGE` settled by this call · `a ID CHARGE` settled before · `z ID REASON`
closed at zero · `w ID REASON` swept. A line is written only after the store has answered.
"""

import asyncio
import os
import random
import sys
from pathlib import Path

from cheapgpu.ledger.answers import AlreadyClosed, Closed, Opened
from cheapgpu.ledger.clock import steady_clock
from cheapgpu.ledger.errors import LedgerError
from cheapgpu.ledger.ids import uuid7
from cheapgpu.ledger.sqlite_store import SqliteStore, open_sqlite
from tests.ledger.facts import an_admission, complete, seen

WORKERS = 16


def say(*words: object) -> None:
    """Write one line, at once and whole."""
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


async def main(path: Path, seed: int) -> None:
    """Run workers and sweepers for ever."""
    store = await open_sqlite(path, steady_clock())
    chance = random.Random(seed)
    say("ready")
    async with asyncio.TaskGroup() as tasks:
        for _ in range(WORKERS):
            tasks.create_task(work(store, random.Random(chance.random())))
        for _ in range(2):
            tasks.create_task(sweep(store))


async def work(store: SqliteStore, chance: random.Random) -> None:
    """Open attempts, and end them in every way there is."""
    now = steady_clock()
    while True:
        opened_us = now()
        attempt_id = uuid7(opened_us, chance.randbytes(10))
        deadline_us = opened_us + chance.choice((3_000, 20_000, 60_000_000))
        answer = await store.open_attempt(
            an_admission(attempt_id=attempt_id, opened_us=opened_us, deadline_us=deadline_us)
        )
        if not isinstance(answer, Opened):
            continue
        say("o", attempt_id)
        way = chance.random()
        if way < 0.6:
            await settle(store, attempt_id, chance.choice((1, 1, 3)))
        elif way < 0.7:
            closed = await store.zero(seen("not_sent", attempt_id=attempt_id))
            if isinstance(closed, Closed):
                say("z", attempt_id, closed.closure.reason)
        elif way < 0.8:
            await store.record_outcome(seen("unknown", attempt_id=attempt_id))


async def settle(store: SqliteStore, attempt_id: str, times: int) -> None:
    """Settle, several times at once."""
    outcome = complete(attempt_id=attempt_id)
    for answer in await asyncio.gather(*(store.settle(outcome) for _ in range(times))):
        if isinstance(answer, Closed):
            say("s", attempt_id, answer.closure.charge)
        elif isinstance(answer, AlreadyClosed) and answer.same:
            say("a", attempt_id, answer.closure.charge)


async def sweep(store: SqliteStore) -> None:
    """Sweep, over and over."""
    while True:
        for closure in await store.sweep(16):
            say("w", closure.attempt_id, closure.reason)
        await asyncio.sleep(0.001)


if __name__ == "__main__":
    try:
        asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
    except* LedgerError as errors:
        sys.exit(f"crash_driver: {errors.exceptions}")
