"""What is written to the ledger and read from it: facts, checked when they are made, never changed.

Times are microseconds since 1970, amounts nano-USD, prices pico-USD per token; a digest is the 32
bytes of a SHA-256. Making a fact that contradicts itself raises FactError or MoneyError. No field
can hold a prompt, an answer or a key.
"""

from typing import Literal

from msgspec import Struct

from cheapgpu.ledger.field_checks import (
    check_admission,
    check_credit,
    check_limits,
    check_name,
    check_outcome,
)
from cheapgpu.ledger.money import hold_amount

#: `evidence`: a hold is quoted and needs no funds, and nothing is charged. `charge`: both are real.
Mode = Literal["evidence", "charge"]
#: `outside` is where money comes from and goes to: the other side of every credit.
AccountKind = Literal["buyer", "supplier", "operator", "outside"]
#: What was seen of an exchange; `not_sent` where no byte had left for the supplier.
Seen = Literal["complete", "failed", "unknown", "refused", "not_sent"]
#: Why an attempt was closed as it was; `late`: complete, and not closed before its deadline.
Reason = Literal["complete", "not_charged", "refused", "not_sent", "failed", "unknown", "late"]
#: Why no attempt was opened.
RefusedFor = Literal[
    "idempotency_open", "idempotency_finished", "idempotency_mismatch",
    "too_late", "buyer_open_limit", "key_open_limit", "key_spend_limit", "overspend",
]  # fmt: skip

#: The accounts that every ledger has.
OPERATOR = "operator"
OUTSIDE = "outside"


class Account(Struct, frozen=True, kw_only=True):
    """Someone who owes or is owed, as registered."""

    #: At most 256 printable characters; for ever.
    account_id: str
    kind: Literal["buyer", "supplier"]

    def __post_init__(self) -> None:
        check_name("account_id", self.account_id)


class Admission(Struct, frozen=True, kw_only=True, gc=False):
    """An attempt as it was admitted: whose, at what price, within what bounds, until when."""

    #: A UUID of version 7.
    attempt_id: str
    mode: Mode
    #: The account that the hold is taken from.
    buyer_id: str
    #: The account that a charge is owed to.
    supplier_id: str
    #: The buyer's key: its id, not its secret.
    key_id: str
    #: The buyer's Idempotency-Key, and the digest of the raw body that came with it; both or none.
    idempotency_key: str | None
    body_sha256: bytes | None
    #: The model that the buyer asked for, and the supplier's name for it.
    public_model: str
    supplier_model: str
    endpoint_id: str
    #: Pico-USD per token.
    price_in: int
    price_out: int
    #: The operator's part of a charge, in basis points.
    fee_bps: int
    #: The version of the policy that decides which answers are charged.
    policy_version: str
    #: The most tokens of prompt and answer that are believed.
    in_ceiling: int
    out_ceiling: int
    #: Microseconds since 1970; the deadline is at most an hour after the opening, and never moves.
    opened_us: int
    deadline_us: int
    #: Digests of the buyer's request and of the one made for the supplier, both salted.
    buyer_request_sha256: bytes
    supplier_request_sha256: bytes
    #: 16 to 32 random bytes.
    salt: bytes

    def __post_init__(self) -> None:
        check_admission(self)

    @property
    def hold(self) -> int:
        """The most that this attempt can cost, in nano-USD."""
        return hold_amount(self.price_in, self.price_out, self.in_ceiling, self.out_ceiling)

    @property
    def reserved(self) -> int:
        """What is set aside of the buyer's balance, in nano-USD: nothing in mode `evidence`."""
        return self.hold if self.mode == "charge" else 0


class Outcome(Struct, frozen=True, kw_only=True, gc=False):
    """What was seen of an attempt: evidence, written once."""

    attempt_id: str
    outcome: Seen
    #: A code of ours that says more, such as `deadline` or `buyer-gone`; "" where there is none.
    reason: str = ""
    #: The ids of the MUST rules that the answer broke.
    broken: tuple[str, ...] = ()
    #: The supplier's status; None where no head came.
    status: int | None = None
    finish_reason: Literal["stop", "length", "content_filter"] | None = None
    #: The usage object as the supplier wrote it, and its counts where they may be believed.
    usage_json: str | None = None
    in_tokens: int | None = None
    out_tokens: int | None = None
    #: When the request was sent, the head came, the first text came: None where it did not.
    sent_us: int | None = None
    head_us: int | None = None
    first_text_us: int | None = None
    #: When the exchange was over.
    ended_us: int
    #: Events of the supplier's stream, and bytes of its body.
    events: int = 0
    body_bytes: int = 0
    #: Digests of the supplier's body and of what the buyer was sent.
    supplier_body_sha256: bytes | None = None
    buyer_stream_sha256: bytes | None = None
    #: Whether the buyer was there until the end.
    delivered: bool = False

    def __post_init__(self) -> None:
        check_outcome(self)


class Closure(Struct, frozen=True, kw_only=True, gc=False):
    """How an attempt ended, written once."""

    attempt_id: str
    kind: Literal["settle", "zero"]
    reason: Reason
    #: Nano-USD: what the buyer pays, the operator's part, and the supplier's, which is the rest.
    charge: int
    fee: int
    supplier_credit: int
    #: By the clock of the store.
    closed_us: int


class Attempt(Struct, frozen=True, kw_only=True):
    """All that is recorded of one attempt."""

    admission: Admission
    #: None while nothing was seen; `recorded_us` is when it was written.
    outcome: Outcome | None
    recorded_us: int | None
    #: Whether the outcome came after the closure, and so decided nothing.
    late: bool
    #: None while the attempt is open.
    closure: Closure | None


class Credit(Struct, frozen=True, kw_only=True):
    """Money that came from outside, or went there: a payment, a payout, or a reversal of either."""

    #: A UUID of version 7.
    credit_id: str
    account_id: str
    #: Nano-USD, not 0; negative where money leaves the account.
    amount: int
    #: For people; at most 256 printable characters.
    reason: str
    #: The credit that this one undoes, with the opposite amount; once.
    reverses: str | None = None
    made_us: int

    def __post_init__(self) -> None:
        check_credit(self)


class Balance(Struct, frozen=True, kw_only=True):
    """What an account has."""

    account_id: str
    kind: AccountKind
    #: The sum of its entries, in nano-USD.
    posted: int
    #: What its open attempts have set aside, in nano-USD, and how many they are.
    held: int
    open_attempts: int

    @property
    def available(self) -> int:
        """What may still be spent, in nano-USD."""
        return self.posted - self.held


class Entry(Struct, frozen=True, kw_only=True):
    """One line of an account; the lines of one cause sum to zero."""

    account_id: str
    #: The attempt whose closure, or the credit that, caused it.
    cause_id: str
    #: Nano-USD, not 0; positive in the account's favour.
    amount: int
    at_us: int


class Limits(Struct, frozen=True, kw_only=True):
    """How far a buyer and a key may go; None is no limit."""

    #: Attempts that are open at the same time.
    buyer_open: int | None = None
    key_open: int | None = None
    #: What the key may ever cost, in nano-USD, what is set aside included.
    key_spend: int | None = None

    def __post_init__(self) -> None:
        check_limits(self)


class Holds(Struct, frozen=True, kw_only=True):
    """The attempts that are open."""

    count: int
    #: Set aside in all, in nano-USD.
    reserved: int
    #: The earliest opening and the earliest deadline; None where none is open.
    oldest_us: int | None
    next_deadline_us: int | None


class Selection(Struct, frozen=True, kw_only=True):
    """Which attempts to list, the newest first."""

    buyer_id: str | None = None
    supplier_id: str | None = None
    key_id: str | None = None
    #: True the open ones, False the closed ones, None both.
    is_open: bool | None = None
    #: Only those older than this attempt: the last one of the page before.
    before: str | None = None
    #: At most 1,000.
    limit: int = 100


NO_LIMITS = Limits()
ALL_ATTEMPTS = Selection()
