"""Prices and amounts against exact fractions."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheapgpu.ledger.errors import MoneyError
from cheapgpu.ledger.money import (
    ALL_BPS,
    MAX_AMOUNT,
    MAX_CEILING,
    MAX_PRICE,
    charge_amount,
    fee_amount,
    format_price,
    format_usd,
    hold_amount,
    json_amount,
    parse_price,
    parse_usd,
    read_json_amount,
)

PRICES = st.integers(0, MAX_PRICE)
CEILINGS = st.integers(0, MAX_CEILING)


@given(PRICES, PRICES, CEILINGS, CEILINGS)
def test_a_hold_is_the_price_rounded_up_and_a_charge_rounded_down(
    price_in: int, price_out: int, in_tokens: int, out_tokens: int
) -> None:
    """Both are the exact price of the tokens, rounded once, and fit 64 bits."""
    exact = Fraction(price_in * in_tokens + price_out * out_tokens, 1_000)
    hold = hold_amount(price_in, price_out, in_tokens, out_tokens)
    assert hold == math.ceil(exact) <= MAX_AMOUNT
    assert charge_amount(price_in, price_out, in_tokens, out_tokens) == math.floor(exact)


@given(PRICES, PRICES, st.data())
def test_no_charge_exceeds_its_hold(price_in: int, price_out: int, data: st.DataObject) -> None:
    """While tokens keep to the ceilings, the hold covers what they cost."""
    in_ceiling, out_ceiling = data.draw(CEILINGS), data.draw(CEILINGS)
    in_tokens = data.draw(st.integers(0, in_ceiling))
    out_tokens = data.draw(st.integers(0, out_ceiling))
    hold = hold_amount(price_in, price_out, in_ceiling, out_ceiling)
    assert charge_amount(price_in, price_out, in_tokens, out_tokens) <= hold


@given(st.integers(0, 4 * 10**15), st.integers(0, ALL_BPS))
def test_a_fee_is_its_part_rounded_down(charge: int, fee_bps: int) -> None:
    """The fee is exact but for less than one nano-USD, which is the supplier's."""
    fee = fee_amount(charge, fee_bps)
    assert fee == math.floor(Fraction(charge) * Fraction(fee_bps, ALL_BPS))
    assert 0 <= fee <= charge
    # As the schema computes it, within 64 bits.
    assert fee == charge // 10_000 * fee_bps + charge % 10_000 * fee_bps // 10_000


@given(PRICES)
def test_a_price_survives_its_text(price: int) -> None:
    """What is written is read back, and means the same number of dollars."""
    text = format_price(price)
    assert parse_price(text) == price
    assert Fraction(text) * 10**6 == price


@given(st.integers(-MAX_AMOUNT, MAX_AMOUNT))
def test_an_amount_survives_its_text(amount: int) -> None:
    """What is written is read back, as dollars and as the string of JSON."""
    assert parse_usd(format_usd(amount)) == amount == Fraction(format_usd(amount)) * 10**9
    assert read_json_amount(json_amount(amount)) == amount


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("0.0375", 37_500), ("0", 0), ("0.000001", 1), ("1000000", MAX_PRICE), ("2.50", 2_500_000),
        ("0.1000000000", 100_000), ("007", 7_000_000),
    ],
)  # fmt: skip
def test_prices_that_are_exact(text: str, price: int) -> None:
    """A price is read exactly; noughts at its end are no digits."""
    assert parse_price(text) == price


@pytest.mark.parametrize(
    "text",
    [
        "0.0000001", "0.00000149", "1000000.000001", "1000001", "-1", "-0.5", "1e3", "", " 1", "1 ",
        ".5", "5.", "1,5", "0x10", "NaN", "inf", "1_000", "٣", "1.5\n", "+1", "9" * 40, "1/3",
    ],
)  # fmt: skip
def test_prices_that_are_refused(text: str) -> None:
    """What is not exact, not in range or not a plain decimal is refused, and never rounded."""
    with pytest.raises(MoneyError):
        parse_price(text)


@pytest.mark.parametrize("text", ["9223372036.854775808", "0.0000000001", "1e9", "", "--1"])
def test_amounts_that_are_refused(text: str) -> None:
    """An amount has at most nine places and fits 64 bits."""
    with pytest.raises(MoneyError):
        parse_usd(text)


@pytest.mark.parametrize(
    "value", [1, 1.0, None, "", "01", "-0", "1.0", "1e3", " 1", str(2**63), "9" * 19, "x"]
)
def test_json_amounts_that_are_refused(value: object) -> None:
    """Nothing is an amount but a string as it is written, within 64 bits."""
    with pytest.raises(MoneyError):
        read_json_amount(value)


@pytest.mark.parametrize(
    "values",
    [
        (-1, 0, 0, 0), (MAX_PRICE + 1, 0, 0, 0), (0, MAX_PRICE + 1, 0, 0), (0, 0, -1, 0),
        (0, 0, MAX_CEILING + 1, 0), (0, 0, 0, MAX_CEILING + 1),
    ],
)  # fmt: skip
def test_prices_and_ceilings_have_limits(values: tuple[int, int, int, int]) -> None:
    """Beyond the limits, where products might exceed 64 bits, nothing is computed."""
    with pytest.raises(MoneyError):
        hold_amount(*values)
    with pytest.raises(MoneyError):
        charge_amount(*values)


def test_a_fee_has_limits() -> None:
    """A fee is from nothing to the whole, of a charge that is not negative."""
    for charge, fee_bps in ((100, ALL_BPS + 1), (100, -1), (-1, 100)):
        with pytest.raises(MoneyError):
            fee_amount(charge, fee_bps)
