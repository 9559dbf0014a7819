"""How an attempt may end, as a table, and what is owed then.

The table is of the design, "The ledger". What is absent is no way to end. A state is what is on
record of an attempt: `open` (a hold, nothing seen), the outcome that was seen, and the closure.
"""

from typing import Final, Literal, NamedTuple

from cheapgpu.ledger.answers import TooLate
from cheapgpu.ledger.errors import IllegalError
from cheapgpu.ledger.facts import Admission, Closure, Mode, Outcome, Reason, Seen
from cheapgpu.ledger.money import charge_amount, fee_amount

#: `settle` and `zero` are asked for; `deadline` is the sweeper, at the original deadline or later.
Occasion = Literal["settle", "zero", "deadline"]


class End(NamedTuple):
    """One way for an attempt to end."""

    kind: Literal["settle", "zero"]
    reason: Reason


#: occasion → what was seen (None: nothing) → the end.
ENDS: Final[dict[Occasion, dict[Seen | None, End]]] = {
    "settle": {
        "complete": End("settle", "complete"),
    },
    "zero": {
        "complete": End("zero", "not_charged"),
        "refused": End("zero", "refused"),
        "not_sent": End("zero", "not_sent"),
    },
    "deadline": {
        None: End("zero", "unknown"),
        "unknown": End("zero", "unknown"),
        "failed": End("zero", "failed"),
        "complete": End("zero", "late"),
        "refused": End("zero", "refused"),
        "not_sent": End("zero", "not_sent"),
    },
}


class Terms(NamedTuple):
    """What of an admission decides how it may end; units as in `facts.Admission`."""

    attempt_id: str
    mode: Mode
    price_in: int
    price_out: int
    fee_bps: int
    in_ceiling: int
    out_ceiling: int
    opened_us: int
    deadline_us: int


def terms_of(admission: Admission) -> Terms:
    """The terms that an attempt was admitted on."""
    return Terms(*(getattr(admission, field) for field in Terms._fields))


def believe(terms: Terms, outcome: Outcome) -> None:
    """Refuse to call complete what reports more tokens than were admitted; raises IllegalError."""
    if outcome.outcome == "complete" and (
        (outcome.in_tokens or 0) > terms.in_ceiling or (outcome.out_tokens or 0) > terms.out_ceiling
    ):
        raise IllegalError("tokens above what was admitted are not believed: the outcome is failed")


def end_of(occasion: Occasion, terms: Terms, outcome: Outcome) -> End:
    """The end that was asked for; raises IllegalError where there is no such way to end."""
    end = ENDS[occasion].get(outcome.outcome)
    if end is None or (end.kind == "settle" and terms.mode != "charge"):
        raise IllegalError(
            f"an attempt in mode {terms.mode} with the outcome {outcome.outcome} "
            f"is not ended by {occasion}"
        )
    return end


def closed(end: End, terms: Terms, outcome: Outcome | None, now_us: int) -> Closure | TooLate:
    """End an open attempt at `now_us`; never before it opened, nor settled after its deadline."""
    charge = fee = 0
    if end.kind == "settle" and outcome is not None:
        if now_us > terms.deadline_us:
            return TooLate(terms.deadline_us, now_us)
        tokens = (outcome.in_tokens or 0, outcome.out_tokens or 0)
        charge = charge_amount(terms.price_in, terms.price_out, *tokens)
        fee = fee_amount(charge, terms.fee_bps)
    return Closure(
        attempt_id=terms.attempt_id,
        kind=end.kind,
        reason=end.reason,
        charge=charge,
        fee=fee,
        supplier_credit=charge - fee,
        closed_us=max(now_us, terms.opened_us),
    )


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> open: open_attempt"]
    seen = dict.fromkeys(key for ends in ENDS.values() for key in ends if key is not None)
    lines += [f"    open --> {outcome}: record_outcome" for outcome in seen]
    for occasion, ends in ENDS.items():
        for outcome, end in ends.items():
            target = "settled" if end.kind == "settle" else f"zero_{end.reason}"
            lines.append(f"    {outcome or 'open'} --> {target}: {occasion}")
    closed = dict.fromkeys(line.split(" --> ")[1].split(":")[0] for line in lines[2 + len(seen) :])
    return "\n".join([*lines, *(f"    {state} --> [*]" for state in closed)]) + "\n"
