"""The page of the ledger says what the code does, and its sums are right."""

import re
from pathlib import Path

from cheapgpu.ledger.closing import diagram
from cheapgpu.ledger.facts import RefusedFor
from cheapgpu.ledger.invariants import INVARIANTS
from cheapgpu.ledger.money import charge_amount, fee_amount, hold_amount, parse_price
from cheapgpu.ledger.store import Store

PAGE = Path("docs/ledger.md").read_text()


def test_the_diagram_is_the_table() -> None:
    """The diagram of the page is drawn from the table that the stores go by."""
    assert f"```mermaid\n{diagram()}```" in PAGE


def test_the_worked_example_adds_up() -> None:
    """Each number of the example is computed anew."""
    price_in, price_out = parse_price("0.0375"), parse_price("0.15")
    hold = hold_amount(price_in, price_out, 8192, 512)
    charge = charge_amount(price_in, price_out, 1201, 77)
    fee = fee_amount(charge, 500)
    last = re.findall(r"\| ([0-9]+)(?: pico-USD a token)? \|$", PAGE, re.MULTILINE)
    assert [int(number) for number in last] == [
        price_in, price_out, hold, charge, fee, charge - fee, hold - charge,
    ]  # fmt: skip
    assert f"buyer −{charge}, supplier +{charge - fee}, operator +{fee}" in PAGE  # noqa: RUF001 -- as printed


def test_every_operation_reason_and_invariant_is_there() -> None:
    """Nothing that a store does, refuses for or is checked for is missing from the page."""
    operations = [name for name in vars(Store) if not name.startswith("_") and name != "close"]
    for name in operations:
        assert f"`{name}(" in PAGE, name
    for reason in RefusedFor.__args__:  # type: ignore[attr-defined]
        assert f"`{reason}`" in PAGE, reason
    for invariant in INVARIANTS:
        assert f"| {invariant.id} | {invariant.sentence} |" in PAGE
