"""What speaks against opening an attempt or moving money: the same for every store."""

from typing import Final

from cheapgpu.ledger.errors import ConflictError, FactError, MoneyError
from cheapgpu.ledger.facts import Credit, Limits, RefusedFor
from cheapgpu.ledger.money import MAX_AMOUNT

#: The longest page of a list.
MAX_PAGE: Final = 1_000


def over_limit(
    limits: Limits, *, buyer_open: int, key_open: int, key_cost: int, left: int
) -> RefusedFor | None:
    """The first limit that one more attempt would pass.

    `buyer_open` and `key_open` count those open now; `key_cost` is what the key would then have
    cost, and `left` what the buyer would have left, in nano-USD.
    """
    if limits.buyer_open is not None and buyer_open >= limits.buyer_open:
        return "buyer_open_limit"
    if limits.key_open is not None and key_open >= limits.key_open:
        return "key_open_limit"
    if limits.key_spend is not None and key_cost > limits.key_spend:
        return "key_spend_limit"
    return "overspend" if left < 0 else None


def check_range(*balances: int) -> None:
    """Refuse balances that 64 bits cannot hold; raises MoneyError."""
    if any(abs(balance) > MAX_AMOUNT for balance in balances):
        raise MoneyError("the balance would not fit 64 bits")


def check_reversal(fact: Credit, original: Credit, reversed_before: object) -> None:
    """Refuse to reverse twice, in part, or a reversal; raises ConflictError."""
    if reversed_before:
        raise ConflictError(f"the credit {original.credit_id} was reversed before")
    if original.reverses is not None:
        raise ConflictError("a reversal is not reversed: make a credit")
    if (fact.account_id, fact.amount) != (original.account_id, -original.amount):
        raise ConflictError("a reversal moves the whole amount back, on the same account")


def check_page(limit: int) -> None:
    """Refuse a page without end; raises FactError."""
    if not 1 <= limit <= MAX_PAGE:
        raise FactError(f"a page has 1 to {MAX_PAGE} rows, not {limit}")
