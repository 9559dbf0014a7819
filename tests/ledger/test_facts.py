"""Facts are checked when they are made, and ids are ordered."""

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheapgpu.ledger.clock import MAX_DEADLINE, MAX_TIME, steady_clock
from cheapgpu.ledger.closing import ENDS, diagram
from cheapgpu.ledger.errors import FactError, LedgerError, MoneyError
from cheapgpu.ledger.facts import Account, Credit, Limits
from cheapgpu.ledger.ids import is_uuid7, uuid7
from cheapgpu.ledger.money import MAX_AMOUNT
from tests.ledger.facts import NOW, a_credit, an_admission, an_id, complete, seen


@pytest.mark.parametrize(
    "change",
    [
        {"attempt_id": "1"}, {"attempt_id": an_id(1).upper()},
        {"attempt_id": "b3bf92ea-6753-49e8-83fc-efb865361da0"},
        {"mode": "free"}, {"buyer_id": ""}, {"key_id": "k" * 257}, {"public_model": "a\nb"},
        {"public_model": "\ud800"}, {"endpoint_id": b"sue"}, {"policy_version": None},
        {"idempotency_key": "k"}, {"body_sha256": b"1" * 32},
        {"idempotency_key": "k" * 257, "body_sha256": b"1" * 32},
        {"idempotency_key": "k", "body_sha256": b"1" * 31},
        {"price_in": -1}, {"price_in": "7"}, {"price_in": 1.0}, {"price_in": True},
        {"price_out": 10**12 + 1}, {"in_ceiling": 2_000_001}, {"out_ceiling": -1},
        {"fee_bps": 10_001}, {"opened_us": -1}, {"opened_us": MAX_TIME + 1},
        {"deadline_us": NOW}, {"deadline_us": NOW + MAX_DEADLINE + 1}, {"deadline_us": 1e9},
        {"buyer_request_sha256": b""}, {"supplier_request_sha256": "s" * 32},
        {"salt": b"0" * 15}, {"salt": b"0" * 33}, {"salt": "0" * 16},
    ],
    ids=str,
)  # fmt: skip
def test_admissions_that_are_refused(change: dict[str, Any]) -> None:
    """An admission has every field in its range and of its type."""
    with pytest.raises((FactError, MoneyError)):
        an_admission(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"attempt_id": "1"}, {"outcome": "perfect"}, {"reason": "x" * 257}, {"broken": ["x"]},
        {"broken": ("x",)}, {"broken": ("",)}, {"finish_reason": "eos"}, {"finish_reason": None},
        {"usage_json": None}, {"in_tokens": None}, {"in_tokens": None, "out_tokens": None},
        {"in_tokens": -1}, {"out_tokens": 2**53}, {"in_tokens": 80.0}, {"status": 204},
        {"status": 99}, {"status": "200"}, {"sent_us": None}, {"head_us": None}, {"ended_us": -1},
        {"first_text_us": "1"}, {"events": -1}, {"body_bytes": 2**53},
        {"supplier_body_sha256": None}, {"buyer_stream_sha256": b"1"}, {"delivered": 1},
        {"usage_json": "{}" + " " * 8_191}, {"usage_json": "\ud800"}, {"usage_json": b"{}"},
    ],
    ids=str,
)  # fmt: skip
def test_complete_outcomes_that_are_refused(change: dict[str, Any]) -> None:
    """A complete outcome has all its evidence, and breaks nothing."""
    with pytest.raises(FactError):
        complete(**change)


@pytest.mark.parametrize(
    "change",
    [{"sent_us": NOW}, {"status": 200}, {"head_us": NOW}, {"events": 1}, {"body_bytes": 1},
     {"supplier_body_sha256": b"1" * 32}, {"usage_json": "{}"}],
    ids=str,
)  # fmt: skip
def test_what_was_not_sent_has_no_answer(change: dict[str, Any]) -> None:
    """`not_sent` claims that no byte left, so nothing can have come back."""
    seen("not_sent")
    with pytest.raises(FactError):
        seen("not_sent", **change)


def test_failures_may_report_anything() -> None:
    """Usage that cannot be believed is kept as it was written, with no counts."""
    assert seen("failed", usage_json='{"prompt_tokens":-1}', broken=("x",) * 256).in_tokens is None
    with pytest.raises(FactError, match="at most 256"):
        seen("failed", broken=("x",) * 257)
    with pytest.raises(FactError, match="usage_json"):
        seen("failed", in_tokens=1, out_tokens=1)


@pytest.mark.parametrize(
    "change",
    [{"credit_id": "1"}, {"account_id": ""}, {"reason": ""}, {"amount": 0}, {"amount": "5"},
     {"amount": MAX_AMOUNT + 1}, {"amount": -MAX_AMOUNT - 1}, {"reverses": "1"}, {"made_us": -1}],
    ids=str,
)  # fmt: skip
def test_credits_that_are_refused(change: dict[str, Any]) -> None:
    """A credit is of something, for a reason, within 64 bits."""
    with pytest.raises((FactError, MoneyError)):
        a_credit(**change)


def test_facts_do_not_change() -> None:
    """A fact is what it was when it was made; errors are the ledger's."""
    credit = a_credit()
    with pytest.raises(AttributeError):
        credit.amount = 5  # type: ignore[misc]
    assert credit == Credit(**{name: getattr(credit, name) for name in credit.__struct_fields__})
    with pytest.raises(LedgerError):
        Account(account_id=" \t", kind="buyer")
    with pytest.raises(LedgerError):
        Limits(key_open=-1)


@given(st.integers(0, MAX_TIME), st.integers(0, MAX_TIME), st.binary(min_size=10, max_size=10))
def test_ids_are_ordered_by_their_time(one_us: int, other_us: int, chance: bytes) -> None:
    """Ids are of version 7, hold their millisecond, and are ordered as it is."""
    one, other = uuid7(one_us, chance), uuid7(other_us, chance)
    assert is_uuid7(one)
    assert uuid.UUID(one).version == 7
    assert uuid.UUID(one).variant == uuid.RFC_4122
    assert uuid.UUID(one).int >> 80 == one_us // 1_000
    assert (one < other) == (one_us // 1_000 < other_us // 1_000)


def test_a_steady_clock_goes_on() -> None:
    """It tells microseconds of this century, and never goes back."""
    clock = steady_clock()
    times = [clock() for _ in range(100)]
    assert times == sorted(times)
    assert 1_700_000_000_000_000 < times[0] < MAX_TIME


def test_the_diagram_holds_every_end() -> None:
    """Every way for an attempt to end is an edge of the diagram in the docs."""
    lines = diagram().splitlines()
    for occasion, ends in ENDS.items():
        for outcome, end in ends.items():
            target = "settled" if end.kind == "settle" else f"zero_{end.reason}"
            assert f"    {outcome or 'open'} --> {target}: {occasion}" in lines
