"""Which values a fact may have: the types too, since SQLite would turn '7' into 7.

Everything here raises FactError, or MoneyError for prices and amounts.
"""

from typing import TYPE_CHECKING, Final

from cheapgpu.ledger.clock import MAX_DEADLINE, MAX_TIME
from cheapgpu.ledger.errors import FactError, MoneyError
from cheapgpu.ledger.ids import is_uuid7
from cheapgpu.ledger.money import ALL_BPS, MAX_AMOUNT, MAX_CEILING, MAX_PRICE

if TYPE_CHECKING:
    from cheapgpu.ledger.facts import Admission, Credit, Limits, Outcome

#: The longest name, in characters, and the longest usage object that is kept, in bytes.
MAX_NAME: Final = 256
MAX_USAGE_BYTES: Final = 8_192
#: The most ids of broken rules that are kept of one answer.
MAX_BROKEN: Final = 256
#: The largest integer that every JSON reader keeps exactly: 2^53 - 1.
MAX_COUNT: Final = 2**53 - 1
_DIGEST_BYTES: Final = 32

_NAMES: Final = (
    "buyer_id", "supplier_id", "key_id", "public_model", "supplier_model", "endpoint_id",
    "policy_version",
)  # fmt: skip
_PROVEN: Final = (
    "finish_reason", "usage_json", "in_tokens", "out_tokens", "sent_us", "head_us",
    "supplier_body_sha256",
)  # fmt: skip
_RECEIVED: Final = ("status", "head_us", "first_text_us", "supplier_body_sha256", "usage_json")


def check_name(field: str, value: object, least: int = 1) -> None:
    """Refuse what is not printable text of a bounded length."""
    if type(value) is not str or not least <= len(value) <= MAX_NAME or not value.isprintable():
        raise FactError(f"{field} must be {least} to {MAX_NAME} printable characters")


def check_admission(fact: "Admission") -> None:
    """Refuse an admission that could not be closed by its own terms."""
    _check_id("attempt_id", fact.attempt_id)
    if fact.mode not in ("evidence", "charge"):
        raise FactError(f"mode is evidence or charge, not {fact.mode!r}")
    for field in _NAMES:
        check_name(field, getattr(fact, field))
    if (fact.idempotency_key is None) != (fact.body_sha256 is None):
        raise FactError("idempotency_key and body_sha256 come together")
    if fact.idempotency_key is not None:
        check_name("idempotency_key", fact.idempotency_key)
        _check_digest("body_sha256", fact.body_sha256)
    _check_digest("buyer_request_sha256", fact.buyer_request_sha256)
    _check_digest("supplier_request_sha256", fact.supplier_request_sha256)
    if type(fact.salt) is not bytes or not 16 <= len(fact.salt) <= 32:
        raise FactError("salt must be 16 to 32 bytes")
    for field in ("price_in", "price_out"):
        _check_int(field, getattr(fact, field), 0, MAX_PRICE, MoneyError)
    for field in ("in_ceiling", "out_ceiling"):
        _check_int(field, getattr(fact, field), 0, MAX_CEILING, MoneyError)
    _check_int("fee_bps", fact.fee_bps, 0, ALL_BPS, MoneyError)
    _check_int("opened_us", fact.opened_us, 0, MAX_TIME)
    _check_int("deadline_us", fact.deadline_us, fact.opened_us + 1, fact.opened_us + MAX_DEADLINE)


def check_outcome(fact: "Outcome") -> None:
    """Refuse an outcome that claims more than it proves."""
    _check_id("attempt_id", fact.attempt_id)
    if fact.outcome not in ("complete", "failed", "unknown", "refused", "not_sent"):
        raise FactError(f"{fact.outcome!r} is no outcome")
    check_name("reason", fact.reason, 0)
    _check_rules(fact.broken)
    if fact.finish_reason not in (None, "stop", "length", "content_filter"):
        raise FactError(f"{fact.finish_reason!r} is no finish reason")
    _check_usage(fact)
    _check_exchange(fact)
    if fact.outcome == "complete":
        missing = [field for field in _PROVEN if getattr(fact, field) is None]
        if missing or fact.broken or fact.status != 200:
            raise FactError(f"complete means 200, nothing broken, and all of {', '.join(_PROVEN)}")
    if fact.outcome == "not_sent":
        seen = [field for field in ("sent_us", *_RECEIVED) if getattr(fact, field) is not None]
        if seen or fact.events or fact.body_bytes:
            raise FactError(f"not_sent, and yet there is {', '.join(seen) or 'a body'}")


def check_credit(fact: "Credit") -> None:
    """Refuse a credit of nothing, or without a reason."""
    _check_id("credit_id", fact.credit_id)
    check_name("account_id", fact.account_id)
    check_name("reason", fact.reason)
    _check_int("amount", fact.amount, -MAX_AMOUNT, MAX_AMOUNT, MoneyError)
    if fact.amount == 0:
        raise MoneyError("a credit of 0 is none")
    if fact.reverses is not None:
        _check_id("reverses", fact.reverses)
    _check_int("made_us", fact.made_us, 0, MAX_TIME)


def check_limits(fact: "Limits") -> None:
    """Refuse limits that are no numbers."""
    for field in ("buyer_open", "key_open", "key_spend"):
        if getattr(fact, field) is not None:
            _check_int(field, getattr(fact, field), 0, MAX_AMOUNT)


def _check_exchange(fact: "Outcome") -> None:
    """Refuse what is no status, time, count or digest."""
    if fact.status is not None:
        _check_int("status", fact.status, 100, 999)
    for field in ("sent_us", "head_us", "first_text_us"):
        if getattr(fact, field) is not None:
            _check_int(field, getattr(fact, field), 0, MAX_TIME)
    _check_int("ended_us", fact.ended_us, 0, MAX_TIME)
    _check_int("events", fact.events, 0, MAX_COUNT)
    _check_int("body_bytes", fact.body_bytes, 0, MAX_COUNT)
    for field in ("supplier_body_sha256", "buyer_stream_sha256"):
        if getattr(fact, field) is not None:
            _check_digest(field, getattr(fact, field))
    if type(fact.delivered) is not bool:
        raise FactError("delivered is True or False")


def _check_usage(fact: "Outcome") -> None:
    if (fact.in_tokens is None) != (fact.out_tokens is None):
        raise FactError("in_tokens and out_tokens come together")
    if fact.in_tokens is not None:
        _check_int("in_tokens", fact.in_tokens, 0, MAX_COUNT)
        _check_int("out_tokens", fact.out_tokens, 0, MAX_COUNT)
        if fact.usage_json is None:
            raise FactError("counts without the usage_json that they were read from")
    if fact.usage_json is not None and not _is_short_text(fact.usage_json):
        raise FactError(f"usage_json must be text of at most {MAX_USAGE_BYTES} bytes")


def _is_short_text(value: object) -> bool:
    """Whether a value is text that UTF-8 has bytes for, and not too many."""
    try:
        return type(value) is str and len(value.encode()) <= MAX_USAGE_BYTES
    except UnicodeEncodeError:
        return False


def _check_rules(broken: object) -> None:
    if type(broken) is not tuple or len(broken) > MAX_BROKEN:
        raise FactError(f"broken must be a tuple of at most {MAX_BROKEN} rule ids")
    for rule in broken:
        check_name("broken", rule)


def _check_id(field: str, value: object) -> None:
    if not is_uuid7(value):
        raise FactError(f"{field} must be a UUID of version 7 in lower case")


def _check_digest(field: str, value: object) -> None:
    if type(value) is not bytes or len(value) != _DIGEST_BYTES:
        raise FactError(f"{field} must be the {_DIGEST_BYTES} bytes of a SHA-256")


def _check_int(
    field: str,
    value: object,
    least: int,
    most: int,
    error: type[FactError | MoneyError] = FactError,
) -> None:
    if type(value) is not int or not least <= value <= most:
        raise error(f"{field} must be an integer from {least} to {most}, not {value!r}")
