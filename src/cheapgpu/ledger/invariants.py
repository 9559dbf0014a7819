"""What must hold of the rows of a ledger: a sentence, and the query for the rows that break it.

Ids: L1 … L8 of the ledger's own list, P1 … P12 of the lessons from other ledgers (docs/ledger.md).
The queries trust neither the schema's triggers nor its checks, which a copy may have lost.
"""

from typing import Final

from msgspec import Struct


class Invariant(Struct, frozen=True):
    """One thing that must hold."""

    id: str
    #: What holds.
    sentence: str
    #: Selects the rows that break it; `:now_us` and `:grace_us` are given.
    sql: str


#: The sum of the amounts of entries. SQLite's own gives up where that of the first few exceeds 64
#: bits, though that of all does not; so the halves are added up, and the carry between them.
_LOW: Final = "sum(amount & 4294967295)"
_SUM: Final = f"(((sum(amount >> 32) + ({_LOW} >> 32)) << 32) + ({_LOW} & 4294967295))"

INVARIANTS: Final = (
    Invariant(
        "L1",
        "every attempt has either a hold or a closure, and neither is there without an attempt",
        """
        SELECT attempt_id, count(h.attempt_id) AS holds, count(c.attempt_id) AS closures
          FROM attempt LEFT JOIN hold h USING (attempt_id) LEFT JOIN closure c USING (attempt_id)
          GROUP BY attempt_id HAVING holds + closures <> 1
        UNION ALL SELECT attempt_id, 1, 0 FROM hold
          WHERE attempt_id NOT IN (SELECT attempt_id FROM attempt)
        UNION ALL SELECT attempt_id, 0, 1 FROM closure
          WHERE attempt_id NOT IN (SELECT attempt_id FROM attempt)
        """,
    ),
    Invariant(
        "L2",
        "an account has the sum of its entries, and has set aside the sum of its open attempts",
        f"""
        SELECT account_id, posted, entries, held, reserved, open_attempts, holds FROM (
          SELECT account_id, posted, held, open_attempts,
            (SELECT ifnull({_SUM}, 0) FROM entry e WHERE e.account_id = a.account_id) AS entries,
            ifnull(r.reserved, 0) AS reserved, ifnull(r.holds, 0) AS holds
          FROM account a LEFT JOIN (
            SELECT t.buyer_id, sum(h.reserved) AS reserved, count(*) AS holds
            FROM hold h JOIN attempt t USING (attempt_id) GROUP BY t.buyer_id
          ) r ON r.buyer_id = a.account_id)
        WHERE posted <> entries OR held <> reserved OR open_attempts <> holds
        """,  # noqa: S608 -- ours
    ),
    Invariant(
        "L2-keys",
        "what a key has open, set aside and spent is what its attempts have",
        """
        SELECT key_id, open_attempts, holds, held, reserved, charged, charges FROM (
          SELECT t.key_id, k.open_attempts, k.held, k.charged, count(h.attempt_id) AS holds,
            ifnull(sum(h.reserved), 0) AS reserved, ifnull(sum(c.charge), 0) AS charges
          FROM attempt t LEFT JOIN hold h USING (attempt_id) LEFT JOIN closure c USING (attempt_id)
          LEFT JOIN key_use k ON k.key_id = t.key_id GROUP BY t.key_id)
        WHERE open_attempts IS NOT holds OR held IS NOT reserved OR charged IS NOT charges
        """,
    ),
    Invariant(
        "L5",
        "nothing is settled after its deadline; nothing that failed or is unknown ends before it",
        """
        SELECT attempt_id, kind, reason, opened_us, deadline_us, closed_us
          FROM closure JOIN attempt USING (attempt_id)
          WHERE closed_us < opened_us OR (kind = 'settle' AND closed_us > deadline_us)
            OR (reason IN ('failed', 'unknown', 'late') AND closed_us < deadline_us)
        """,
    ),
    Invariant(
        "L7",
        "nothing is open after its deadline and the sweeper's interval",
        """
        SELECT attempt_id, deadline_us, reserved FROM hold WHERE deadline_us + :grace_us < :now_us
        """,
    ),
    Invariant(
        "L8",
        "a charge is the price of the reported tokens, a fee its part, both rounded down",
        """
        SELECT attempt_id, charge, fee, supplier_credit, price_in, price_out, fee_bps, in_tokens,
            out_tokens
          FROM closure JOIN attempt USING (attempt_id) LEFT JOIN outcome USING (attempt_id)
          WHERE (kind = 'zero' AND (charge <> 0 OR fee <> 0))
            OR (kind = 'settle' AND (
              charge IS NOT (price_in * in_tokens + price_out * out_tokens) / 1000
              OR fee IS NOT charge / 10000 * fee_bps + charge % 10000 * fee_bps / 10000))
            OR supplier_credit <> charge - fee
        """,
    ),
    Invariant(
        "P1",
        "the entries of every cause sum to zero",
        f"SELECT cause_id, {_SUM} AS sum FROM entry GROUP BY cause_id HAVING {_SUM} <> 0",  # noqa: S608 -- ours
    ),
    Invariant(
        "P2",
        "no buyer and no supplier has spent more than they have, holds included",
        """
        SELECT account_id, posted, held FROM account
          WHERE held < 0 OR (kind IN ('buyer', 'supplier') AND posted < held)
        """,
    ),
    Invariant(
        "P4",
        "a hold is the price of both ceilings, rounded up, and no charge is above it",
        """
        SELECT attempt_id, hold, reserved, charge FROM attempt LEFT JOIN closure USING (attempt_id)
          WHERE hold <> (price_in * in_ceiling + price_out * out_ceiling + 999) / 1000
            OR reserved <> iif(mode = 'charge', hold, 0) OR charge > reserved
        """,
    ),
    Invariant(
        "P5",
        "what was settled was complete, in mode charge, with evidence that came before the closure",
        """
        SELECT attempt_id, mode, outcome, late, recorded_us, closed_us
          FROM closure c JOIN attempt USING (attempt_id) LEFT JOIN outcome USING (attempt_id)
          WHERE kind = 'settle' AND (mode <> 'charge' OR outcome IS NOT 'complete' OR late <> 0
            OR supplier_body_sha256 IS NULL OR c.reason <> 'complete')
        """,
    ),
    Invariant(
        "P7",
        "a deadline is at most an hour after the opening, and a hold has that of its attempt",
        """
        SELECT attempt_id, opened_us, a.deadline_us, h.deadline_us AS of_hold
          FROM attempt a LEFT JOIN hold h USING (attempt_id)
          WHERE a.deadline_us - opened_us NOT BETWEEN 1 AND 3600000000
            OR h.deadline_us <> a.deadline_us OR h.reserved <> a.reserved
        """,
    ),
    Invariant(
        "P8",
        "the reason of a zero closure is what was seen when it was written",
        """
        SELECT attempt_id, c.reason, outcome, late
          FROM closure c LEFT JOIN outcome o USING (attempt_id)
          WHERE c.kind = 'zero' AND CASE iif(late = 0, outcome, NULL)
            WHEN 'complete' THEN c.reason NOT IN ('not_charged', 'late')
            WHEN 'refused' THEN c.reason <> 'refused'
            WHEN 'not_sent' THEN c.reason <> 'not_sent'
            WHEN 'failed' THEN c.reason <> 'failed'
            ELSE c.reason <> 'unknown' END
        UNION ALL SELECT attempt_id, NULL, outcome, late FROM outcome
          WHERE attempt_id NOT IN (SELECT attempt_id FROM attempt)
        """,
    ),
    Invariant(
        "P9",
        "a buyer has used an idempotency key once, and its body is known",
        """
        SELECT buyer_id, idempotency_key, count(*) AS attempts FROM attempt
          WHERE idempotency_key IS NOT NULL GROUP BY buyer_id, idempotency_key
          HAVING count(*) > 1 OR count(body_sha256) < count(*)
        """,
    ),
    Invariant(
        "P10",
        "a complete outcome has the counts that were reported, within the ceilings; nothing broke",
        """
        SELECT attempt_id, in_tokens, out_tokens, usage_json, in_ceiling, out_ceiling, broken
          FROM outcome JOIN attempt USING (attempt_id) WHERE outcome = 'complete' AND (
            in_tokens IS NULL OR out_tokens IS NULL OR in_tokens > in_ceiling
            OR out_tokens > out_ceiling OR broken <> '[]'
            OR CASE WHEN json_valid(usage_json) THEN
              json_extract(usage_json, '$.prompt_tokens') IS NOT in_tokens
              OR json_extract(usage_json, '$.completion_tokens') IS NOT out_tokens
              OR json_extract(usage_json, '$.total_tokens') IS NOT in_tokens + out_tokens
            ELSE TRUE END)
        """,
    ),
    Invariant(
        "P12",
        "closures and credits have the entries that they call for, and there are no others",
        """
        WITH due (account_id, cause_id, amount) AS (
          SELECT buyer_id, attempt_id, -charge FROM closure JOIN attempt USING (attempt_id)
          UNION ALL
          SELECT supplier_id, attempt_id, supplier_credit
            FROM closure JOIN attempt USING (attempt_id)
          UNION ALL SELECT 'operator', attempt_id, fee FROM closure
          UNION ALL SELECT account_id, credit_id, amount FROM credit
          UNION ALL SELECT 'outside', credit_id, -amount FROM credit)
        SELECT 'missing' AS fault, * FROM
          (SELECT * FROM due WHERE amount <> 0
            EXCEPT SELECT account_id, cause_id, amount FROM entry)
        UNION ALL SELECT 'without cause', * FROM
          (SELECT account_id, cause_id, amount FROM entry EXCEPT SELECT * FROM due)
        """,
    ),
    Invariant(
        "P12-reversals",
        "a reversal moves back the whole of one credit, once",
        """
        SELECT r.credit_id, r.reverses, r.amount, c.amount AS original
          FROM credit r LEFT JOIN credit c ON c.credit_id = r.reverses
          WHERE r.reverses IS NOT NULL AND (c.credit_id IS NULL OR c.amount <> -r.amount
            OR c.account_id <> r.account_id OR c.reverses IS NOT NULL
            OR (SELECT count(*) FROM credit o WHERE o.reverses = r.reverses) > 1)
        """,
    ),
)
