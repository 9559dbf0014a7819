"""Rows of the ledger's tables to facts and back; a column has the name of its field."""

from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from cheapgpu.ledger.facts import Admission, Attempt, Closure, Outcome

_encode: Final = msgspec.json.Encoder().encode
_decode_rules: Final = msgspec.json.Decoder(tuple[str, ...]).decode

ADMISSION: Final = Admission.__struct_fields__
OUTCOME: Final = Outcome.__struct_fields__
CLOSURE: Final = Closure.__struct_fields__
_BROKEN: Final = OUTCOME.index("broken")
_DELIVERED: Final = OUTCOME.index("delivered")


def insert(table: str, columns: tuple[str, ...]) -> str:
    """The statement that inserts one row."""
    places = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 -- ours


INSERT_ATTEMPT: Final = insert("attempt", (*ADMISSION, "hold", "reserved"))
INSERT_OUTCOME: Final = insert("outcome", (*OUTCOME, "recorded_us", "late"))
INSERT_CLOSURE: Final = insert("closure", CLOSURE)

#: Everything of an attempt in one row, in the order that `attempt_of` reads.
SELECT_ATTEMPT: Final = (
    "SELECT "  # noqa: S608 -- names of fields
    + ", ".join(
        [
            *(f"a.{name}" for name in ADMISSION),
            *(f"o.{name}" for name in (*OUTCOME, "recorded_us", "late")),
            *(f"c.{name}" for name in CLOSURE),
        ]
    )
    + " FROM attempt a LEFT JOIN outcome o ON o.attempt_id = a.attempt_id"
    " LEFT JOIN closure c ON c.attempt_id = a.attempt_id "
)


def attempt_row(admission: Admission) -> tuple[Any, ...]:
    """The row of an admission."""
    return (*astuple(admission), admission.hold, admission.reserved)


def outcome_row(outcome: Outcome, recorded_us: int, *, late: bool) -> tuple[Any, ...]:
    """The row of an outcome."""
    row = list(astuple(outcome))
    row[_BROKEN] = _encode(outcome.broken).decode()
    row[_DELIVERED] = int(outcome.delivered)
    return (*row, recorded_us, int(late))


def outcome_of(row: tuple[Any, ...]) -> Outcome:
    """The outcome that a row holds."""
    fields = dict(zip(OUTCOME, row, strict=True))
    fields["broken"] = _decode_rules(fields["broken"])
    fields["delivered"] = bool(fields["delivered"])
    return Outcome(**fields)


def closure_of(row: tuple[Any, ...]) -> Closure:
    """The closure that a row holds."""
    return Closure(**dict(zip(CLOSURE, row, strict=True)))


def attempt_of(row: tuple[Any, ...]) -> Attempt:
    """The attempt that a row of `SELECT_ATTEMPT` holds."""
    end = len(ADMISSION)
    admission, row = row[:end], row[end:]
    end = len(OUTCOME)
    outcome, recorded_us, late, closure = row[:end], row[end], row[end + 1], row[end + 2 :]
    return Attempt(
        admission=Admission(**dict(zip(ADMISSION, admission, strict=True))),
        outcome=None if recorded_us is None else outcome_of(outcome),
        recorded_us=recorded_us,
        late=bool(late),
        closure=None if closure[0] is None else closure_of(closure),
    )
