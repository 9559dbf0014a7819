"""The stores that the conformance suite holds to the same promises."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cheapgpu.ledger.memory import MemoryStore
from cheapgpu.ledger.sqlite_store import open_sqlite
from cheapgpu.ledger.store import Store
from tests.ledger.facts import Clock

#: Opens a new, empty store on a clock.
Opener = Callable[[Clock], Awaitable[Store]]


@pytest.fixture(params=["memory", "sqlite"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens a store of each kind in turn."""

    async def open_store(clock: Clock) -> Store:
        if request.param == "memory":
            return MemoryStore(clock)
        return await open_sqlite(tmp_path / "ledger.db", clock)

    return open_store
