"""The SQLite store against the in-memory one: any operations, in any order, same answers."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from cheapgpu.ledger.answers import Closed
from cheapgpu.ledger.check import check
from cheapgpu.ledger.errors import LedgerError
from cheapgpu.ledger.facts import OPERATOR, OUTSIDE, Limits, Outcome, Selection
from cheapgpu.ledger.memory import MemoryStore
from cheapgpu.ledger.sqlite_store import SqliteStore
from tests.ledger.facts import (
    NOW,
    Clock,
    a_credit,
    an_admission,
    complete,
    furnished,
    seen,
)

if TYPE_CHECKING:
    from cheapgpu.ledger.store import Store

SECONDS = 1_000_000
NUMBERS = st.integers(1, 12)
ACCOUNTS = ("ann", "bob", "sue", "sam", OPERATOR, OUTSIDE, "eve")
OUTCOMES = st.builds(
    lambda number, kind, tokens, finish: (
        seen(kind, number)
        if kind != "complete"
        else complete(
            number,
            finish_reason=finish,
            in_tokens=tokens[0],
            out_tokens=tokens[1],
            usage_json=(
                f'{{"prompt_tokens":{tokens[0]},"completion_tokens":{tokens[1]},'
                f'"total_tokens":{sum(tokens)}}}'
            ),
        )
    ),
    NUMBERS,
    st.sampled_from(
        ("complete", "complete", "complete", "failed", "unknown", "refused", "not_sent")
    ),
    st.sampled_from(((80, 40), (0, 0), (100, 50), (101, 50))),
    st.sampled_from(("stop", "length")),
)


class BothStores(RuleBasedStateMachine):
    """Does everything twice, and compares; the file passes every invariant at the end."""

    outcomes = Bundle("outcomes")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="cheapgpu-ledger-"))
        self.path = self.folder / "ledger.db"
        self.clock = Clock()
        self.runner = asyncio.Runner()
        self.model = MemoryStore(self.clock)
        self.real: Store = SqliteStore(self.path, self.clock)
        for store in (self.model, self.real):
            self.runner.run(furnished(store, 2_000))

    def both(self, ask: Any) -> Any:
        """Ask both stores, expect one answer or one kind of error, and return it."""
        answers = [self.runner.run(answered(ask(store))) for store in (self.model, self.real)]
        assert answers[0] == answers[1]
        return answers[0]

    @rule(
        number=NUMBERS,
        mode=st.sampled_from(("charge", "charge", "evidence")),
        buyer=st.sampled_from(("ann", "ann", "bob", "eve")),
        supplier=st.sampled_from(("sue", "sam")),
        key=st.sampled_from((None, None, "once", "twice")),
        body=st.sampled_from((b"1", b"2")),
        price=st.sampled_from((2_000, 1, 0, 7_777)),
        seconds=st.sampled_from((1, 60, 3_600)),
        limits=st.builds(
            Limits,
            buyer_open=st.sampled_from((None, 1, 3)),
            key_open=st.sampled_from((None, 2)),
            key_spend=st.sampled_from((None, 500, 1_500)),
        ),
    )
    def open_attempt(
        self, number: int, mode: str, buyer: str, supplier: str, key: str | None, body: bytes,
        price: int, seconds: int, limits: Limits,
    ) -> None:  # fmt: skip
        """Open an attempt, or fail to."""
        admission = an_admission(
            number,
            mode=mode,
            buyer_id=buyer,
            supplier_id=supplier,
            key_id=f"key-{number % 2}",
            idempotency_key=key,
            body_sha256=body * 32 if key else None,
            price_in=price,
            fee_bps=number * 333,
            opened_us=self.clock.now_us,
            deadline_us=self.clock.now_us + seconds * SECONDS,
        )
        self.both(lambda store: store.open_attempt(admission, limits))

    @rule(target=outcomes, outcome=OUTCOMES)
    def see(self, outcome: Outcome) -> Outcome:
        """Keep an outcome, so that it is written again."""
        return outcome

    @rule(outcome=outcomes)
    def record(self, outcome: Outcome) -> None:
        """Record an outcome."""
        self.both(lambda store: store.record_outcome(outcome))

    @rule(outcome=outcomes)
    def settle(self, outcome: Outcome) -> None:
        """Settle, twice: the second is a replay of the first."""
        first = self.both(lambda store: store.settle(outcome))
        second = self.both(lambda store: store.settle(outcome))
        if isinstance(first, Closed):
            assert second.same
            assert second.closure == first.closure

    @rule(outcome=outcomes)
    def zero(self, outcome: Outcome) -> None:
        """Close at zero."""
        self.both(lambda store: store.zero(outcome))

    @rule(limit=st.integers(1, 5))
    def sweep(self, limit: int) -> None:
        """Close what is due."""
        self.both(lambda store: store.sweep(limit))

    @rule(
        number=st.integers(901, 906),
        account=st.sampled_from(ACCOUNTS),
        amount=st.sampled_from((1, 500, -1, -500, 2_000, -2_000, 2**63 - 1)),
        reverses=st.sampled_from((None, None, 900, 901, 902)),
    )
    def credit(self, number: int, account: str, amount: int, reverses: int | None) -> None:
        """Move money, or fail to."""
        undone = None if reverses is None else a_credit(reverses).credit_id
        credit = a_credit(number, account_id=account, amount=amount, reverses=undone)
        self.both(lambda store: store.credit(credit))

    @rule(seconds=st.sampled_from((0.000001, 1, 59, 60, 3_600, -1, -3_600)))
    def time_passes(self, seconds: float) -> None:
        """Move the clock, sometimes back."""
        self.clock.now_us = max(NOW - 7_200 * SECONDS, self.clock.now_us + int(seconds * SECONDS))

    @rule()
    def reopen(self) -> None:
        """Close the file and open it again."""
        self.runner.run(self.real.close())
        self.real = SqliteStore(self.path, self.clock)

    @invariant()
    def accounts_agree(self) -> None:
        """Balances agree, and all money is somewhere."""
        balances = [self.both(lambda store, a=account: store.balance(a)) for account in ACCOUNTS]
        assert sum(balance.posted for balance in balances if balance) == 0
        self.both(lambda store: store.holds())

    def teardown(self) -> None:
        """Compare all that is recorded, and check the file."""
        try:
            self.both(lambda store: store.attempts(Selection(limit=1_000)))
            for account in ACCOUNTS:
                self.both(lambda store, a=account: store.entries(a, limit=1_000))
            assert check(self.path, self.clock.now_us, grace_us=2**60) == ()
        finally:
            self.runner.run(self.real.close())
            self.runner.close()
            shutil.rmtree(self.folder)


async def answered(ask: Coroutine[Any, Any, Any]) -> Any:
    """What a store answers, or the kind of error that it raises."""
    try:
        return await ask
    except LedgerError as error:
        return type(error)


# Half as many runs as the profile has examples: each is forty operations, on a file.
BothStores.TestCase.settings = settings(
    max_examples=settings().max_examples // 2, stateful_step_count=40
)
TestBothStores = BothStores.TestCase
