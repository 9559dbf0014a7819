"""What every store promises, the stand-in and the real ones alike."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cheapgpu.ledger.answers import (
    AlreadyClosed,
    Closed,
    Credited,
    Opened,
    Recorded,
    Refused,
    TooLate,
)
from cheapgpu.ledger.errors import (
    ClosedError,
    ConflictError,
    FactError,
    IllegalError,
    MoneyError,
    UnknownError,
)
from cheapgpu.ledger.facts import (
    NO_LIMITS,
    OPERATOR,
    OUTSIDE,
    Account,
    Holds,
    Limits,
    Outcome,
    Selection,
)
from cheapgpu.ledger.money import MAX_AMOUNT, MAX_CEILING, MAX_PRICE
from cheapgpu.ledger.store import Store
from tests.ledger.conftest import Opener
from tests.ledger.facts import (
    CHARGE,
    DEADLINE,
    FEE,
    HOLD,
    NOW,
    Clock,
    a_credit,
    an_admission,
    an_id,
    complete,
    furnished,
    run,
    seen,
)


@asynccontextmanager
async def opened(
    opener: Opener, clock: Clock | None = None, funds: int = 1_000
) -> AsyncIterator[Store]:
    """A store with the usual accounts."""
    store = await opener(clock or Clock())
    await furnished(store, funds)
    try:
        yield store
    finally:
        await store.close()


async def money(store: Store, account_id: str = "ann") -> tuple[int, int, int]:
    """What an account has, has set aside, and has open."""
    balance = await store.balance(account_id)
    assert balance is not None
    return balance.posted, balance.held, balance.open_attempts


# Opening.


def test_opening_takes_the_hold(opener: Opener) -> None:
    """An opened attempt has its hold, which its buyer cannot spend twice."""

    async def main() -> None:
        async with opened(opener) as store:
            admission = an_admission()
            assert await store.open_attempt(admission) == Opened(an_id(1))
            assert await money(store) == (1_000, HOLD, 1)
            attempt = await store.attempt(an_id(1))
            assert attempt is not None
            assert (attempt.admission, attempt.outcome, attempt.closure) == (admission, None, None)
            assert await store.holds() == Holds(
                count=1, reserved=HOLD, oldest_us=NOW, next_deadline_us=DEADLINE
            )

    run(main())


def test_an_overspend_is_refused_and_leaves_nothing(opener: Opener) -> None:
    """An attempt whose hold does not fit is refused; one that fits to the last unit is opened."""

    async def main() -> None:
        async with opened(opener, funds=2 * HOLD - 1) as store:
            assert await store.open_attempt(an_admission(1)) == Opened(an_id(1))
            assert await store.open_attempt(an_admission(2)) == Refused("overspend")
            assert await store.attempt(an_id(2)) is None
            await store.credit(a_credit(901, amount=1))
            assert await store.open_attempt(an_admission(2)) == Opened(an_id(2))
            assert await money(store) == (2 * HOLD, 2 * HOLD, 2)

    run(main())


def test_evidence_needs_no_funds(opener: Opener) -> None:
    """In mode evidence the hold is quoted, nothing is set aside and nothing can be charged."""

    async def main() -> None:
        async with opened(opener, funds=0) as store:
            admission = an_admission(mode="evidence")
            assert (admission.hold, admission.reserved) == (HOLD, 0)
            assert await store.open_attempt(admission) == Opened(an_id(1))
            assert await money(store) == (0, 0, 1)
            with pytest.raises(IllegalError, match="mode evidence"):
                await store.settle(complete())
            answer = await store.zero(complete())
            assert isinstance(answer, Closed)
            assert (answer.closure.reason, answer.closure.charge) == ("not_charged", 0)
            assert await money(store) == (0, 0, 0)
            assert await store.entries("ann") == ()

    run(main())


def test_an_id_is_used_once(opener: Opener) -> None:
    """A second opening with the same id is an error, so that nobody dispatches twice."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.open_attempt(an_admission())
            with pytest.raises(ConflictError, match="opened before"):
                await store.open_attempt(an_admission())
            await store.settle(complete())
            with pytest.raises(ConflictError, match="opened before"):
                await store.open_attempt(an_admission())
            assert await money(store) == (1_000 - CHARGE, 0, 0)

    run(main())


@pytest.mark.parametrize(
    "change", [{"buyer_id": "eve"}, {"buyer_id": "sue"}, {"supplier_id": "ann"}]
)
def test_accounts_must_be_there(opener: Opener, change: dict[str, Any]) -> None:
    """Buyer and supplier are registered, each as what they are."""

    async def main() -> None:
        async with opened(opener) as store:
            with pytest.raises(UnknownError, match=next(iter(change.values()))):
                await store.open_attempt(an_admission(**change))

    run(main())


def test_an_account_keeps_its_kind(opener: Opener) -> None:
    """To register an account again changes nothing; as another kind it is an error."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.add_account(Account(account_id="ann", kind="buyer"))
            assert await money(store) == (1_000, 0, 0)
            for account_id in ("ann", OPERATOR, OUTSIDE):
                with pytest.raises(ConflictError, match="already"):
                    await store.add_account(Account(account_id=account_id, kind="supplier"))
            assert await store.balance("eve") is None

    run(main())


def test_an_idempotency_key_leads_to_its_attempt(opener: Opener) -> None:
    """A key used before is answered with its attempt: open, finished, or for another body."""

    async def main() -> None:
        async with opened(opener) as store:
            keyed: dict[str, Any] = {"idempotency_key": "once", "body_sha256": b"1" * 32}
            await store.open_attempt(an_admission(1, **keyed))
            again = an_admission(2, **keyed)
            assert await store.open_attempt(again) == Refused("idempotency_open", an_id(1))
            other = an_admission(2, idempotency_key="once", body_sha256=b"2" * 32)
            assert await store.open_attempt(other) == Refused("idempotency_mismatch", an_id(1))
            await store.settle(complete())
            assert await store.open_attempt(again) == Refused("idempotency_finished", an_id(1))
            assert await store.open_attempt(other) == Refused("idempotency_mismatch", an_id(1))
            found = await store.attempt_of_key("ann", "once")
            assert found is not None
            assert found.admission.attempt_id == an_id(1)
            assert await store.attempt_of_key("bob", "once") is None
            mode = {"mode": "evidence", "buyer_id": "bob"}
            assert await store.open_attempt(an_admission(2, **keyed, **mode)) == Opened(an_id(2))

    run(main())


def test_limits_are_of_the_buyer_and_of_the_key(opener: Opener) -> None:
    """Open attempts are bounded per buyer and per key, spending per key; closing gives room."""

    async def main() -> None:
        async with opened(opener, funds=10_000) as store:
            one = Limits(key_open=1)
            assert await store.open_attempt(an_admission(1), one) == Opened(an_id(1))
            assert await store.open_attempt(an_admission(2), one) == Refused("key_open_limit")
            other_key = an_admission(2, key_id="key-2")
            assert await store.open_attempt(other_key, one) == Opened(an_id(2))
            full = Limits(buyer_open=2)
            assert await store.open_attempt(an_admission(3), full) == Refused("buyer_open_limit")
            await store.settle(complete(1))
            enough = Limits(buyer_open=2, key_open=1, key_spend=CHARGE + HOLD)
            little = Limits(key_spend=CHARGE + HOLD - 1)
            assert await store.open_attempt(an_admission(3), little) == Refused("key_spend_limit")
            assert await store.open_attempt(an_admission(3), enough) == Opened(an_id(3))
            assert await store.open_attempt(an_admission(4), NO_LIMITS) == Opened(an_id(4))

    run(main())


def test_nothing_opens_at_its_deadline(opener: Opener) -> None:
    """An attempt whose deadline has come is refused: it would be cut before it began."""

    async def main() -> None:
        async with opened(opener, Clock(DEADLINE)) as store:
            assert await store.open_attempt(an_admission()) == Refused("too_late")
            assert await money(store) == (1_000, 0, 0)

    run(main())


# Ending.


def test_a_settlement_moves_the_money(opener: Opener) -> None:
    """The buyer pays the charge, the operator has its fee and the supplier the rest."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.open_attempt(an_admission())
            answer = await store.settle(complete())
            assert isinstance(answer, Closed)
            closure = answer.closure
            assert (closure.kind, closure.reason, closure.closed_us) == ("settle", "complete", NOW)
            amounts = (closure.charge, closure.fee, closure.supplier_credit)
            assert amounts == (CHARGE, FEE, CHARGE - FEE)
            assert await money(store) == (1_000 - CHARGE, 0, 0)
            assert await money(store, "sue") == (CHARGE - FEE, 0, 0)
            assert await money(store, OPERATOR) == (FEE, 0, 0)
            assert await money(store, OUTSIDE) == (-1_000, 0, 0)
            (entry,) = await store.entries("sue")
            assert (entry.cause_id, entry.amount, entry.at_us) == (an_id(1), CHARGE - FEE, NOW)
            attempt = await store.attempt(an_id(1))
            assert attempt is not None
            assert (attempt.outcome, attempt.closure) == (complete(), closure)
            assert (attempt.recorded_us, attempt.late) == (NOW, False)

    run(main())


def test_a_replay_is_a_success(opener: Opener) -> None:
    """To settle again with the same outcome is answered with the closure, and moves nothing."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.open_attempt(an_admission())
            first = await store.settle(complete())
            assert isinstance(first, Closed)
            assert await store.settle(complete()) == AlreadyClosed(first.closure, same=True)
            assert await store.zero(complete()) == AlreadyClosed(first.closure, same=False)
            with pytest.raises(ConflictError, match="another outcome"):
                await store.settle(complete(out_tokens=39, usage_json=usage(80, 39)))
            assert await money(store) == (1_000 - CHARGE, 0, 0)

    run(main())


def usage(in_tokens: int, out_tokens: int) -> str:
    """A usage object of so many tokens."""
    total = in_tokens + out_tokens
    return (
        f'{{"prompt_tokens":{in_tokens},"completion_tokens":{out_tokens},"total_tokens":{total}}}'
    )


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (complete(), "not_charged"),
        (seen("refused", status=503, sent_us=NOW, head_us=NOW), "refused"),
        (seen("not_sent"), "not_sent"),
    ],
)
def test_zero_at_once(opener: Opener, outcome: Outcome, reason: str) -> None:
    """Complete and not charged, refused, and not sent end at once, and give the hold back."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.open_attempt(an_admission())
            answer = await store.zero(outcome)
            assert isinstance(answer, Closed)
            closure = answer.closure
            assert (closure.kind, closure.reason, closure.charge) == ("zero", reason, 0)
            assert await store.zero(outcome) == AlreadyClosed(closure, same=True)
            assert await money(store) == (1_000, 0, 0)

    run(main())


@pytest.mark.parametrize("outcome", ["failed", "unknown"])
def test_failures_wait_for_the_deadline(opener: Opener, outcome: str) -> None:
    """What failed or is unknown is on record at once, and ends at zero at its deadline."""

    async def main() -> None:
        clock = Clock()
        async with opened(opener, clock) as store:
            await store.open_attempt(an_admission())
            for end in (store.zero, store.settle):
                with pytest.raises(IllegalError, match=outcome):
                    await end(seen(outcome))
            attempt = await store.attempt(an_id(1))
            assert attempt is not None
            assert attempt.outcome is None
            fact = seen(outcome, broken=("stream/done-last",))
            assert await store.record_outcome(fact) == Recorded(late=False, again=False)
            assert await store.record_outcome(fact) == Recorded(late=False, again=True)
            clock.now_us = DEADLINE - 1
            assert await store.sweep() == ()
            clock.now_us = DEADLINE
            (closure,) = await store.sweep()
            assert (closure.reason, closure.charge) == (outcome, 0)
            assert await money(store) == (1_000, 0, 0)

    run(main())


def test_the_deadline_is_decided_by_the_clock_of_the_store(opener: Opener) -> None:
    """At the deadline a settlement is in time; one tick later it is not, and the end is zero."""

    async def main() -> None:
        clock = Clock()
        async with opened(opener, clock) as store:
            await store.open_attempt(an_admission(1))
            await store.open_attempt(an_admission(2))
            clock.now_us = DEADLINE
            assert isinstance(await store.settle(complete(1)), Closed)
            clock.now_us = DEADLINE + 1
            assert await store.settle(complete(2)) == TooLate(DEADLINE, DEADLINE + 1)
            attempt = await store.attempt(an_id(2))
            assert attempt is not None
            assert attempt.outcome == complete(2)
            (closure,) = await store.sweep()
            assert (closure.attempt_id, closure.reason) == (an_id(2), "late")
            assert await store.settle(complete(2)) == AlreadyClosed(closure, same=False)
            assert await money(store) == (1_000 - CHARGE, 0, 0)

    run(main())


def test_late_evidence_changes_nothing(opener: Opener) -> None:
    """An outcome that comes after the closure is kept, marked late, and moves no money."""

    async def main() -> None:
        clock = Clock()
        async with opened(opener, clock) as store:
            await store.open_attempt(an_admission())
            clock.now_us = DEADLINE
            (closure,) = await store.sweep()
            assert closure.reason == "unknown"
            assert await store.settle(complete()) == AlreadyClosed(closure, same=False)
            assert await store.record_outcome(complete()) == Recorded(late=True, again=True)
            attempt = await store.attempt(an_id(1))
            assert attempt is not None
            assert (attempt.outcome, attempt.late, attempt.closure) == (complete(), True, closure)
            assert await money(store) == (1_000, 0, 0)

    run(main())


def test_tokens_above_the_ceiling_are_not_believed(opener: Opener) -> None:
    """A complete answer with more tokens than admitted is refused; as a failure it is kept."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.open_attempt(an_admission())
            counts: dict[str, Any] = {"in_tokens": 101, "usage_json": usage(101, 40)}
            for write in (store.record_outcome, store.settle, store.zero):
                with pytest.raises(IllegalError, match="not believed"):
                    await write(complete(**counts))
            await store.record_outcome(seen("failed", out_tokens=40, **counts))

    run(main())


def test_zero_tokens_are_a_count(opener: Opener) -> None:
    """An explicit zero is settled, for nothing, and leaves no entry."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.open_attempt(an_admission())
            answer = await store.settle(complete(in_tokens=0, out_tokens=0, usage_json=usage(0, 0)))
            assert isinstance(answer, Closed)
            assert (answer.closure.kind, answer.closure.charge) == ("settle", 0)
            assert len(await store.entries("ann")) == 1

    run(main())


def test_an_attempt_must_be_there(opener: Opener) -> None:
    """What was never opened has no outcome and no end."""

    async def main() -> None:
        async with opened(opener) as store:
            for end in (store.record_outcome, store.settle, store.zero):
                with pytest.raises(UnknownError, match=an_id(1)):
                    await end(complete())
            assert await store.attempt(an_id(1)) is None

    run(main())


def test_the_sweeper_goes_by_deadline_and_is_bounded(opener: Opener) -> None:
    """A sweep closes the earliest first, as many as it may; at once, each is closed once."""

    async def main() -> None:
        clock = Clock()
        async with opened(opener, clock, funds=100_000) as store:
            for number in range(1, 31):
                await store.open_attempt(an_admission(number, deadline_us=DEADLINE - number))
            clock.now_us = DEADLINE
            first = await store.sweep(3)
            assert [closure.attempt_id for closure in first] == [an_id(30), an_id(29), an_id(28)]
            racing = await asyncio.gather(*(store.sweep(20) for _ in range(4)))
            swept = [closure.attempt_id for closures in (first, *racing) for closure in closures]
            assert sorted(swept) == [an_id(number) for number in range(1, 31)]
            assert await store.sweep() == ()
            assert await money(store) == (100_000, 0, 0)

    run(main())


def test_a_clock_that_jumps_breaks_nothing(opener: Opener) -> None:
    """Backwards, an attempt ends no earlier than it began; forwards, it ends at zero."""

    async def main() -> None:
        clock = Clock()
        async with opened(opener, clock) as store:
            await store.open_attempt(an_admission(1))
            clock.now_us = NOW - 3_600_000_000
            answer = await store.settle(complete(1))
            assert isinstance(answer, Closed)
            assert answer.closure.closed_us == NOW
            clock.now_us = NOW
            await store.open_attempt(an_admission(2))
            clock.now_us = NOW + 3_600_000_000
            (closure,) = await store.sweep()
            clock.now_us = NOW
            assert await store.settle(complete(2)) == AlreadyClosed(closure, same=False)

    run(main())


# Many at once.


def test_of_many_settlements_one_closes(opener: Opener) -> None:
    """Of a hundred settlements at once one closes the attempt, the others are replays."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.open_attempt(an_admission())
            answers = await asyncio.gather(*(store.settle(complete()) for _ in range(100)))
            assert sum(isinstance(answer, Closed) for answer in answers) == 1
            others = [answer for answer in answers if isinstance(answer, AlreadyClosed)]
            assert len(others) == 99
            assert all(answer.same for answer in others)
            assert await money(store) == (1_000 - CHARGE, 0, 0)

    run(main())


def test_settlement_and_zero_race(opener: Opener) -> None:
    """Of a settlement and a zero at once the first decides; the other is told, no more."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.open_attempt(an_admission())
            answers = await asyncio.gather(store.zero(complete()), store.settle(complete()))
            assert isinstance(answers[0], Closed)
            assert answers[1] == AlreadyClosed(answers[0].closure, same=False)
            assert await money(store) == (1_000, 0, 0)

    run(main())


def test_a_tight_balance_is_never_overspent(opener: Opener) -> None:
    """Two hundred at once on funds for seven: seven are opened, all others refused."""

    async def main() -> None:
        async with opened(opener, funds=8 * HOLD - 1) as store:
            answers = await asyncio.gather(
                *(store.open_attempt(an_admission(number)) for number in range(200))
            )
            assert sum(isinstance(answer, Opened) for answer in answers) == 7
            assert answers.count(Refused("overspend")) == 193
            assert await money(store) == (8 * HOLD - 1, 7 * HOLD, 7)

    run(main())


def test_an_idempotency_key_opens_once_among_many(opener: Opener) -> None:
    """Of fifty at once with one key, one is opened, and the others are led to it."""

    async def main() -> None:
        async with opened(opener, funds=100_000) as store:
            answers = await asyncio.gather(
                *(
                    store.open_attempt(
                        an_admission(number, idempotency_key="once", body_sha256=b"1" * 32)
                    )
                    for number in range(50)
                )
            )
            assert answers[0] == Opened(an_id(0))
            assert answers.count(Refused("idempotency_open", an_id(0))) == 49

    run(main())


# Money.


def test_credits_are_entries(opener: Opener) -> None:
    """A credit and its reversal are two entries each; again with the same id, nothing more."""

    async def main() -> None:
        async with opened(opener, funds=0) as store:
            payment = a_credit()
            assert await store.credit(payment) == Credited(again=False)
            assert await store.credit(payment) == Credited(again=True)
            assert await money(store) == (1_000, 0, 0)
            with pytest.raises(ConflictError, match="already"):
                await store.credit(a_credit(amount=2_000))
            back = a_credit(901, amount=-1_000, reason="paid back", reverses=an_id(900))
            assert await store.credit(back) == Credited(again=False)
            assert await store.credit(back) == Credited(again=True)
            assert await money(store) == (0, 0, 0)
            amounts = [entry.amount for entry in await store.entries("ann")]
            assert amounts == [1_000, -1_000]
            assert await money(store, OUTSIDE) == (0, 0, 0)

    run(main())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"amount": -999, "reverses": an_id(900)}, "whole amount"),
        ({"amount": -1_000, "reverses": an_id(900), "account_id": "bob"}, "same account"),
        ({"amount": -7, "reverses": an_id(901)}, "reversed before"),
        ({"amount": 7, "reverses": an_id(902)}, "a reversal is not reversed"),
    ],
)
def test_a_reversal_is_whole_and_once(opener: Opener, change: dict[str, Any], error: str) -> None:
    """A reversal undoes one credit, all of it, once, and is not itself undone."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.credit(a_credit(901, amount=7))
            await store.credit(a_credit(902, amount=-7, reverses=an_id(901)))
            with pytest.raises(ConflictError, match=error):
                await store.credit(a_credit(903, **change))
            assert await money(store) == (1_000, 0, 0)

    run(main())


def test_what_is_held_cannot_leave(opener: Opener) -> None:
    """A withdrawal or a reversal of what open attempts have set aside is refused."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.open_attempt(an_admission())
            left = 1_000 - HOLD
            over = a_credit(901, amount=-left - 1)
            assert await store.credit(over) == Refused("overspend")
            back = a_credit(902, amount=-1_000, reverses=an_id(900))
            assert await store.credit(back) == Refused("overspend")
            assert await store.credit(a_credit(903, amount=-left)) == Credited(again=False)
            await store.settle(complete())
            payout = a_credit(904, account_id="sue", amount=-(CHARGE - FEE))
            assert await store.credit(payout) == Credited(again=False)
            assert await money(store, "sue") == (0, 0, 0)
            more = a_credit(905, account_id="sue", amount=-1)
            assert await store.credit(more) == Refused("overspend")

    run(main())


@pytest.mark.parametrize(
    "change", [{"account_id": "eve"}, {"account_id": OUTSIDE}, {"reverses": an_id(77)}]
)
def test_a_credit_needs_its_account(opener: Opener, change: dict[str, str]) -> None:
    """Money goes to registered accounts, and undoes what was done; the outside has no credit."""

    async def main() -> None:
        async with opened(opener) as store:
            with pytest.raises(UnknownError, match=next(iter(change.values()))):
                await store.credit(a_credit(901, **change))

    run(main())


def test_money_at_its_limits(opener: Opener) -> None:
    """The dearest attempt is held and settled to the unit; a balance beyond 64 bits is refused."""

    async def main() -> None:
        async with opened(opener, funds=MAX_AMOUNT) as store:
            with pytest.raises(MoneyError, match="64 bits"):
                await store.credit(a_credit(901, amount=1))
            with pytest.raises(MoneyError, match="64 bits"):
                await store.credit(a_credit(901, account_id="bob", amount=1))
            dear = {"price_in": MAX_PRICE, "price_out": MAX_PRICE, "fee_bps": 9_999}
            most = {"in_ceiling": MAX_CEILING, "out_ceiling": MAX_CEILING}
            await store.open_attempt(an_admission(**dear, **most))
            assert await money(store) == (MAX_AMOUNT, 4 * 10**15, 1)
            answer = await store.settle(
                complete(
                    in_tokens=MAX_CEILING,
                    out_tokens=MAX_CEILING - 1,
                    usage_json=usage(MAX_CEILING, MAX_CEILING - 1),
                )
            )
            assert isinstance(answer, Closed)
            charge = 4 * 10**15 - 10**9
            assert answer.closure.charge == charge
            assert answer.closure.fee == charge * 9_999 // 10_000

    run(main())


# Reading.


def test_attempts_are_listed_in_pages(opener: Opener) -> None:
    """Lists are newest first, by buyer, supplier, key and state, in bounded pages."""

    async def main() -> None:
        async with opened(opener, funds=100_000) as store:
            for number in range(1, 7):
                supplier = "sue" if number % 2 else "sam"
                key = f"key-{number % 3}"
                await store.open_attempt(an_admission(number, supplier_id=supplier, key_id=key))
            await store.settle(complete(6))

            async def listed(**chosen: Any) -> list[int]:
                found = await store.attempts(Selection(**chosen))
                ids = [attempt.admission.attempt_id for attempt in found]
                return [number for name in ids for number in range(1, 7) if an_id(number) == name]

            assert await listed() == [6, 5, 4, 3, 2, 1]
            assert await listed(limit=2) == [6, 5]
            assert await listed(limit=2, before=an_id(5)) == [4, 3]
            assert await listed(supplier_id="sam") == [6, 4, 2]
            assert await listed(supplier_id="sam", key_id="key-0") == [6]
            assert await listed(buyer_id="ann", is_open=True) == [5, 4, 3, 2, 1]
            assert await listed(is_open=False) == [6]
            assert await listed(buyer_id="bob") == []
            for limit in (0, 1_001):
                with pytest.raises(FactError, match="a page has"):
                    await listed(limit=limit)

    run(main())


def test_entries_are_listed_in_pages(opener: Opener) -> None:
    """The lines of an account come in the order of their causes, a page at a time."""

    async def main() -> None:
        async with opened(opener, funds=0) as store:
            for number in (903, 901, 902):
                await store.credit(a_credit(number, amount=number))
            page = await store.entries("ann", limit=2)
            assert [entry.amount for entry in page] == [901, 902]
            rest = await store.entries("ann", after=page[-1].cause_id)
            assert [entry.amount for entry in rest] == [903]
            assert await store.holds() == Holds(
                count=0, reserved=0, oldest_us=None, next_deadline_us=None
            )

    run(main())


def test_a_closed_store_does_nothing_more(opener: Opener) -> None:
    """After `close` every operation raises, and to close again is no error."""

    async def main() -> None:
        async with opened(opener) as store:
            await store.close()
            with pytest.raises(ClosedError):
                await store.open_attempt(an_admission())
            with pytest.raises(ClosedError):
                await store.balance("ann")

    run(main())
