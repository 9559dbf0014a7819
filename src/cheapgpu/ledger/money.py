"""Prices and amounts: integers only, multiplied exactly, rounded once per attempt.

A *price* is in pico-USD per token, which is micro-USD per million tokens: 0.0375 USD per million is
37,500. An *amount* is in nano-USD and fits a signed 64-bit integer (9.2 billion USD). A hold is
rounded up and a charge down, so that no charge exceeds its hold while tokens keep to the ceilings.
"""

import re
from typing import Final

from cheapgpu.ledger.errors import MoneyError

#: The dearest price, in pico-USD per token: a million USD per million tokens.
MAX_PRICE: Final = 10**12
#: The highest ceiling on the tokens of one side of an attempt; keeps every product below 2^63.
MAX_CEILING: Final = 2_000_000
#: The largest amount, in nano-USD.
MAX_AMOUNT: Final = 2**63 - 1
#: The whole, in basis points.
ALL_BPS: Final = 10_000

_PICO_PER_NANO: Final = 1_000
_PRICE_DIGITS: Final = 6
_AMOUNT_DIGITS: Final = 9
_DECIMAL: Final = re.compile(r"(-?)([0-9]{1,30})(?:\.([0-9]{1,30}))?")


def parse_price(text: str) -> int:
    """Read decimal USD per million tokens ("0.0375") as pico-USD per token.

    Raises MoneyError where it is no plain decimal, not exact, or not within 0 … 1,000,000.
    """
    price = _scaled(text, _PRICE_DIGITS, "a price")
    if not 0 <= price <= MAX_PRICE:
        raise MoneyError(f"{text!r}: a price is from 0 to 1000000 USD per million tokens")
    return price


def format_price(price: int) -> str:
    """Write pico-USD per token as decimal USD per million tokens, as short as it is."""
    return _decimal(price, _PRICE_DIGITS)


def parse_usd(text: str) -> int:
    """Read decimal USD ("12.5") as nano-USD.

    Raises MoneyError where it is no plain decimal, has over nine places, or exceeds 64 bits.
    """
    amount = _scaled(text, _AMOUNT_DIGITS, "an amount")
    if not -MAX_AMOUNT <= amount <= MAX_AMOUNT:
        raise MoneyError(f"{text!r}: an amount is at most {format_usd(MAX_AMOUNT)} USD")
    return amount


def format_usd(amount: int) -> str:
    """Write nano-USD as decimal USD, with no more digits than needed."""
    return _decimal(amount, _AMOUNT_DIGITS)


def json_amount(amount: int) -> str:
    """Write nano-USD for JSON: a string of digits, since readers round numbers above 2^53."""
    return str(amount)


def read_json_amount(text: object) -> int:
    """Read what `json_amount` wrote; raises MoneyError for all else, a JSON number included."""
    if not isinstance(text, str) or not re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text):
        raise MoneyError(f"{text!r} is no amount: nano-USD are written as a string of digits")
    amount = int(text)
    if not -MAX_AMOUNT <= amount <= MAX_AMOUNT:
        raise MoneyError(f"{text!r} does not fit 64 bits")
    return amount


def hold_amount(price_in: int, price_out: int, in_ceiling: int, out_ceiling: int) -> int:
    """The most that an attempt can cost, in nano-USD, rounded up."""
    return -(-_pico(price_in, price_out, in_ceiling, out_ceiling) // _PICO_PER_NANO)


def charge_amount(price_in: int, price_out: int, in_tokens: int, out_tokens: int) -> int:
    """What tokens cost, in nano-USD, rounded down."""
    return _pico(price_in, price_out, in_tokens, out_tokens) // _PICO_PER_NANO


def fee_amount(charge: int, fee_bps: int) -> int:
    """The operator's part of a charge, in nano-USD, rounded down; the supplier has the rest."""
    if charge < 0 or not 0 <= fee_bps <= ALL_BPS:
        raise MoneyError(f"a fee is 0 to {ALL_BPS} basis points of a charge, not {fee_bps}")
    return charge * fee_bps // ALL_BPS


def _pico(price_in: int, price_out: int, in_tokens: int, out_tokens: int) -> int:
    if not (0 <= price_in <= MAX_PRICE and 0 <= price_out <= MAX_PRICE):
        raise MoneyError(f"a price is 0 to {MAX_PRICE} pico-USD per token")
    if not (0 <= in_tokens <= MAX_CEILING and 0 <= out_tokens <= MAX_CEILING):
        raise MoneyError(f"an attempt has at most {MAX_CEILING} tokens on either side")
    return price_in * in_tokens + price_out * out_tokens


def _scaled(text: str, digits: int, what: str) -> int:
    """Read a plain decimal as an integer of its `digits`-th places."""
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise MoneyError(f"{text!r} is not {what}: write it as a plain decimal such as 0.25")
    sign, whole, places = match.groups(default="")
    places = places.rstrip("0")
    if len(places) > digits:
        raise MoneyError(
            f"{text!r} is not {what} that can be kept exactly: {digits} places at most"
        )
    return int(f"{sign}{whole}{places.ljust(digits, '0')}")


def _decimal(value: int, digits: int) -> str:
    whole, places = divmod(abs(value), 10**digits)
    fraction = f"{places:0{digits}d}".rstrip("0")
    return f"{'-' if value < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"
