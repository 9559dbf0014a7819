"""Facts for the tests of the ledger: small, valid, and changed by name."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from cheapgpu.ledger.clock import SECOND
from cheapgpu.ledger.facts import Account, Admission, Credit, Outcome
from cheapgpu.ledger.ids import uuid7
from cheapgpu.ledger.store import Store

T = TypeVar("T")

#: The time at which the tests begin, in microseconds since 1970, and the usual deadline.
NOW = 1_800_000_000 * SECOND
DEADLINE = NOW + 300 * SECOND
#: The usual hold (100 tokens in at 2, 50 out at 5 nano-USD) and the charge for 80 and 40 tokens.
HOLD, CHARGE, FEE = 450, 360, 36


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now_us: int = NOW) -> None:
        self.now_us = now_us

    def __call__(self) -> int:  # noqa: D102 -- it is a clock
        return self.now_us


def an_id(number: int) -> str:
    """The id of that number; ids are ordered as their numbers are."""
    return uuid7(NOW + number * 1_000, number.to_bytes(10))


def an_admission(number: int = 1, **changes: Any) -> Admission:
    """An attempt of the buyer `ann` at the supplier `sue`, in mode `charge`."""
    fields: dict[str, Any] = {
        "attempt_id": an_id(number),
        "mode": "charge",
        "buyer_id": "ann",
        "supplier_id": "sue",
        "key_id": "key-1",
        "idempotency_key": None,
        "body_sha256": None,
        "public_model": "small",
        "supplier_model": "sup/small",
        "endpoint_id": "sue-1",
        "price_in": 2_000,
        "price_out": 5_000,
        "fee_bps": 1_000,
        "policy_version": "1",
        "in_ceiling": 100,
        "out_ceiling": 50,
        "opened_us": NOW,
        "deadline_us": DEADLINE,
        "buyer_request_sha256": b"b" * 32,
        "supplier_request_sha256": b"s" * 32,
        "salt": b"0" * 16,
    }
    return Admission(**{**fields, **changes})


def complete(number: int = 1, **changes: Any) -> Outcome:
    """A complete answer of 80 and 40 tokens."""
    fields: dict[str, Any] = {
        "attempt_id": an_id(number),
        "outcome": "complete",
        "status": 200,
        "finish_reason": "stop",
        "usage_json": '{"prompt_tokens":80,"completion_tokens":40,"total_tokens":120}',
        "in_tokens": 80,
        "out_tokens": 40,
        "sent_us": NOW,
        "head_us": NOW + 1,
        "first_text_us": NOW + 2,
        "ended_us": NOW + 3,
        "events": 5,
        "body_bytes": 600,
        "supplier_body_sha256": b"x" * 32,
        "buyer_stream_sha256": b"y" * 32,
        "delivered": True,
    }
    return Outcome(**{**fields, **changes})


def seen(outcome: Any, number: int = 1, **changes: Any) -> Outcome:
    """Another outcome than a complete one."""
    fields: dict[str, Any] = {"attempt_id": an_id(number), "ended_us": NOW + 3}
    return Outcome(outcome=outcome, **{**fields, **changes})


def a_credit(number: int = 900, **changes: Any) -> Credit:
    """A thousand nano-USD for `ann`."""
    fields: dict[str, Any] = {
        "credit_id": an_id(number),
        "account_id": "ann",
        "amount": 1_000,
        "reason": "paid in",
        "made_us": NOW,
    }
    return Credit(**{**fields, **changes})


async def furnished(store: Store, funds: int = 1_000) -> None:
    """Register the buyers `ann` and `bob` and the suppliers `sue` and `sam`; give ann her funds."""
    for buyer in ("ann", "bob"):
        await store.add_account(Account(account_id=buyer, kind="buyer"))
    for supplier in ("sue", "sam"):
        await store.add_account(Account(account_id=supplier, kind="supplier"))
    if funds:
        await store.credit(a_credit(amount=funds))


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine to its end."""
    return asyncio.run(asyncio.wait_for(work, 60))
