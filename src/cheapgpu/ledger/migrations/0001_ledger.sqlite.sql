-- The ledger. Rows, not a status column: an attempt is open exactly while it has a hold.
--
-- Only attempt, outcome, closure, credit and account are inserted into; everything else is written
-- by triggers, in the same statement. A wrong step is refused by RAISE(ABORT), never by a constraint
-- inside a trigger: a statement's OR IGNORE, OR FAIL and OR REPLACE reach into the statements of its
-- triggers, and change what constraints do there, but not what RAISE does. Parents are looked up
-- rather than REFERENCED, since SQLite checks foreign keys only for connections that ask for it.
--
-- Times: microseconds since 1970. Amounts: nano-USD. Prices: pico-USD per token.

CREATE TABLE account (
  account_id    TEXT PRIMARY KEY,
  kind          TEXT NOT NULL CHECK (kind IN ('buyer', 'supplier', 'operator', 'outside')),
  posted        INTEGER NOT NULL DEFAULT 0,                     -- the sum of its entries
  held          INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),   -- the sum of what its holds reserve
  open_attempts INTEGER NOT NULL DEFAULT 0 CHECK (open_attempts >= 0),
  posted_by     TEXT,                                           -- the cause that moved posted last
  held_by       TEXT,                                           -- the attempt that moved held last
  CONSTRAINT overspend CHECK (kind IN ('operator', 'outside') OR posted >= held)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt (
  attempt_id              TEXT PRIMARY KEY CHECK (length(attempt_id) = 36),
  mode                    TEXT NOT NULL CHECK (mode IN ('evidence', 'charge')),
  buyer_id                TEXT NOT NULL,
  supplier_id             TEXT NOT NULL,
  key_id                  TEXT NOT NULL,
  idempotency_key         TEXT,
  body_sha256             BLOB CHECK (length(body_sha256) = 32),
  public_model            TEXT NOT NULL,
  supplier_model          TEXT NOT NULL,
  endpoint_id             TEXT NOT NULL,
  price_in                INTEGER NOT NULL CHECK (price_in BETWEEN 0 AND 1000000000000),
  price_out               INTEGER NOT NULL CHECK (price_out BETWEEN 0 AND 1000000000000),
  fee_bps                 INTEGER NOT NULL CHECK (fee_bps BETWEEN 0 AND 10000),
  policy_version          TEXT NOT NULL,
  in_ceiling              INTEGER NOT NULL CHECK (in_ceiling BETWEEN 0 AND 2000000),
  out_ceiling             INTEGER NOT NULL CHECK (out_ceiling BETWEEN 0 AND 2000000),
  opened_us               INTEGER NOT NULL CHECK (opened_us BETWEEN 0 AND 253402300799999999),
  deadline_us             INTEGER NOT NULL CHECK (deadline_us - opened_us BETWEEN 1 AND 3600000000),
  buyer_request_sha256    BLOB NOT NULL CHECK (length(buyer_request_sha256) = 32),
  supplier_request_sha256 BLOB NOT NULL CHECK (length(supplier_request_sha256) = 32),
  salt                    BLOB NOT NULL CHECK (length(salt) BETWEEN 16 AND 32),
  hold                    INTEGER NOT NULL
    CHECK (hold = (price_in * in_ceiling + price_out * out_ceiling + 999) / 1000),
  reserved                INTEGER NOT NULL
    CHECK (reserved = CASE mode WHEN 'charge' THEN hold ELSE 0 END),
  CHECK ((idempotency_key IS NULL) = (body_sha256 IS NULL))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX attempt_of_idempotency_key ON attempt (buyer_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX attempt_of_buyer ON attempt (buyer_id, attempt_id);
CREATE INDEX attempt_of_supplier ON attempt (supplier_id, attempt_id);

CREATE TABLE hold (
  attempt_id  TEXT PRIMARY KEY,
  deadline_us INTEGER NOT NULL,
  reserved    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX hold_by_deadline ON hold (deadline_us);

CREATE TABLE outcome (
  attempt_id           TEXT PRIMARY KEY,
  outcome              TEXT NOT NULL
    CHECK (outcome IN ('complete', 'failed', 'unknown', 'refused', 'not_sent')),
  reason               TEXT NOT NULL,
  broken               TEXT NOT NULL CHECK (json_type(broken) = 'array'),
  status               INTEGER CHECK (status BETWEEN 100 AND 999),
  finish_reason        TEXT CHECK (finish_reason IN ('stop', 'length', 'content_filter')),
  usage_json           TEXT CHECK (length(usage_json) <= 8192),
  in_tokens            INTEGER CHECK (in_tokens BETWEEN 0 AND 9007199254740991),
  out_tokens           INTEGER CHECK (out_tokens BETWEEN 0 AND 9007199254740991),
  sent_us              INTEGER,
  head_us              INTEGER,
  first_text_us        INTEGER,
  ended_us             INTEGER NOT NULL,
  events               INTEGER NOT NULL CHECK (events >= 0),
  body_bytes           INTEGER NOT NULL CHECK (body_bytes >= 0),
  supplier_body_sha256 BLOB CHECK (length(supplier_body_sha256) = 32),
  buyer_stream_sha256  BLOB CHECK (length(buyer_stream_sha256) = 32),
  delivered            INTEGER NOT NULL CHECK (delivered IN (0, 1)),
  recorded_us          INTEGER NOT NULL,
  late                 INTEGER NOT NULL CHECK (late IN (0, 1)),  -- came after the closure
  CHECK ((in_tokens IS NULL) = (out_tokens IS NULL)),
  CONSTRAINT complete CHECK (outcome <> 'complete' OR (
    broken = '[]' AND status IS 200 AND finish_reason IS NOT NULL AND sent_us IS NOT NULL
    AND head_us IS NOT NULL AND supplier_body_sha256 IS NOT NULL AND in_tokens IS NOT NULL
    AND usage_json IS NOT NULL AND json_extract(usage_json, '$.prompt_tokens') IS in_tokens
    AND json_extract(usage_json, '$.completion_tokens') IS out_tokens
    AND json_extract(usage_json, '$.total_tokens') IS in_tokens + out_tokens)),
  CONSTRAINT not_sent CHECK (outcome <> 'not_sent' OR (
    status IS NULL AND sent_us IS NULL AND head_us IS NULL AND first_text_us IS NULL
    AND events = 0 AND body_bytes = 0 AND supplier_body_sha256 IS NULL AND usage_json IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE closure (
  attempt_id      TEXT PRIMARY KEY,
  kind            TEXT NOT NULL CHECK (kind IN ('settle', 'zero')),
  reason          TEXT NOT NULL CHECK (reason IN
    ('complete', 'not_charged', 'refused', 'not_sent', 'failed', 'unknown', 'late')),
  charge          INTEGER NOT NULL CHECK (charge >= 0),
  fee             INTEGER NOT NULL CHECK (fee BETWEEN 0 AND charge),
  supplier_credit INTEGER NOT NULL CHECK (supplier_credit = charge - fee),
  closed_us       INTEGER NOT NULL,
  CHECK ((kind = 'settle') = (reason = 'complete')),
  CHECK (kind = 'settle' OR charge = 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE credit (
  credit_id  TEXT PRIMARY KEY CHECK (length(credit_id) = 36),
  account_id TEXT NOT NULL,
  amount     INTEGER NOT NULL CHECK (amount <> 0 AND amount > -9223372036854775808),
  reason     TEXT NOT NULL CHECK (length(reason) > 0),
  reverses   TEXT UNIQUE,
  made_us    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE entry (
  account_id TEXT NOT NULL,
  cause_id   TEXT NOT NULL,                     -- of a closed attempt, or of a credit
  amount     INTEGER NOT NULL CHECK (amount <> 0),
  at_us      INTEGER NOT NULL,
  PRIMARY KEY (account_id, cause_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE key_use (                          -- what a buyer's key has open, and has cost
  key_id        TEXT PRIMARY KEY,
  open_attempts INTEGER NOT NULL CHECK (open_attempts >= 0),
  held          INTEGER NOT NULL CHECK (held >= 0),
  charged       INTEGER NOT NULL CHECK (charged >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO account (account_id, kind) VALUES ('operator', 'operator'), ('outside', 'outside');

-- (none) -> open

CREATE TRIGGER attempt_opens BEFORE INSERT ON attempt BEGIN
  SELECT RAISE(ABORT, 'attempt-exists')
    WHERE EXISTS (SELECT 1 FROM attempt WHERE attempt_id = NEW.attempt_id);
  SELECT RAISE(ABORT, 'idempotency-key-used')
    WHERE NEW.idempotency_key IS NOT NULL AND EXISTS (
      SELECT 1 FROM attempt WHERE buyer_id = NEW.buyer_id AND idempotency_key = NEW.idempotency_key);
  SELECT RAISE(ABORT, 'no-such-buyer')
    WHERE NOT EXISTS (SELECT 1 FROM account WHERE account_id = NEW.buyer_id AND kind = 'buyer');
  SELECT RAISE(ABORT, 'no-such-supplier')
    WHERE NOT EXISTS (SELECT 1 FROM account WHERE account_id = NEW.supplier_id AND kind = 'supplier');
END;

CREATE TRIGGER attempt_takes_hold AFTER INSERT ON attempt BEGIN
  INSERT INTO hold (attempt_id, deadline_us, reserved)
    VALUES (NEW.attempt_id, NEW.deadline_us, NEW.reserved);
  INSERT INTO key_use (key_id, open_attempts, held, charged) VALUES (NEW.key_id, 1, NEW.reserved, 0)
    ON CONFLICT (key_id) DO UPDATE SET
      open_attempts = open_attempts + 1, held = held + excluded.held;
END;

CREATE TRIGGER hold_begins BEFORE INSERT ON hold BEGIN
  SELECT RAISE(ABORT, 'hold-without-attempt') WHERE NOT EXISTS (
    SELECT 1 FROM attempt a WHERE a.attempt_id = NEW.attempt_id
      AND a.deadline_us IS NEW.deadline_us AND a.reserved IS NEW.reserved);
  UPDATE account SET held = held + NEW.reserved, open_attempts = open_attempts + 1,
      held_by = NEW.attempt_id
    WHERE account_id = (SELECT buyer_id FROM attempt WHERE attempt_id = NEW.attempt_id);
END;

-- Held moves only while an attempt opens (it has neither hold nor closure yet) or closes (it has
-- both, still): moments that exist within a statement of ours, and never between two statements.
CREATE TRIGGER account_held_moves BEFORE UPDATE OF held, open_attempts, held_by ON account BEGIN
  SELECT RAISE(ABORT, 'held-without-cause') WHERE NOT EXISTS (
    SELECT 1 FROM attempt a WHERE a.attempt_id = NEW.held_by AND a.buyer_id = NEW.account_id
      AND CASE EXISTS (SELECT 1 FROM hold h WHERE h.attempt_id = a.attempt_id)
             + EXISTS (SELECT 1 FROM closure c WHERE c.attempt_id = a.attempt_id)
          WHEN 0 THEN NEW.held IS OLD.held + a.reserved
                  AND NEW.open_attempts IS OLD.open_attempts + 1
          WHEN 2 THEN NEW.held IS OLD.held - a.reserved
                  AND NEW.open_attempts IS OLD.open_attempts - 1
          ELSE FALSE END);
  SELECT RAISE(ABORT, 'overspend') WHERE NEW.posted < NEW.held;
END;

-- open -> an outcome, once; before the closure or after it

CREATE TRIGGER outcome_is_seen BEFORE INSERT ON outcome BEGIN
  SELECT RAISE(ABORT, 'outcome-exists')
    WHERE EXISTS (SELECT 1 FROM outcome WHERE attempt_id = NEW.attempt_id);
  SELECT RAISE(ABORT, 'no-such-attempt')
    WHERE NOT EXISTS (SELECT 1 FROM attempt WHERE attempt_id = NEW.attempt_id);
  SELECT RAISE(ABORT, 'tokens-above-ceiling') WHERE NEW.outcome = 'complete' AND EXISTS (
    SELECT 1 FROM attempt WHERE attempt_id = NEW.attempt_id
      AND (in_ceiling < NEW.in_tokens OR out_ceiling < NEW.out_tokens));
  SELECT RAISE(ABORT, 'late-means-after-the-closure')
    WHERE NEW.late IS NOT EXISTS (SELECT 1 FROM closure WHERE attempt_id = NEW.attempt_id);
END;

-- open -> closed, once

CREATE TRIGGER attempt_closes BEFORE INSERT ON closure BEGIN
  SELECT RAISE(ABORT, 'closure-exists')
    WHERE EXISTS (SELECT 1 FROM closure WHERE attempt_id = NEW.attempt_id);
  SELECT RAISE(ABORT, 'not-open')
    WHERE NOT EXISTS (SELECT 1 FROM hold WHERE attempt_id = NEW.attempt_id);
  SELECT RAISE(ABORT, 'settle-not-proven') WHERE NEW.kind = 'settle' AND NOT EXISTS (
    SELECT 1 FROM attempt a JOIN outcome o USING (attempt_id)
      WHERE a.attempt_id = NEW.attempt_id AND a.mode = 'charge' AND o.outcome = 'complete'
        AND NEW.closed_us BETWEEN a.opened_us AND a.deadline_us
        AND NEW.charge IS (a.price_in * o.in_tokens + a.price_out * o.out_tokens) / 1000
        AND NEW.charge <= a.hold
        -- charge * fee_bps / 10000, rounded down, without the product that exceeds 64 bits
        AND NEW.fee IS NEW.charge / 10000 * a.fee_bps + NEW.charge % 10000 * a.fee_bps / 10000);
  SELECT RAISE(ABORT, 'zero-not-due') WHERE NEW.kind = 'zero' AND NOT EXISTS (
    SELECT 1 FROM attempt a LEFT JOIN outcome o USING (attempt_id)
      WHERE a.attempt_id = NEW.attempt_id AND NEW.closed_us >= a.opened_us
        AND CASE NEW.reason
            WHEN 'not_charged' THEN o.outcome = 'complete'
            WHEN 'refused' THEN o.outcome = 'refused'
            WHEN 'not_sent' THEN o.outcome = 'not_sent'
            WHEN 'late' THEN o.outcome = 'complete' AND NEW.closed_us >= a.deadline_us
            WHEN 'failed' THEN o.outcome = 'failed' AND NEW.closed_us >= a.deadline_us
            WHEN 'unknown' THEN ifnull(o.outcome, 'unknown') = 'unknown'
                            AND NEW.closed_us >= a.deadline_us
            ELSE FALSE END);
END;

CREATE TRIGGER closure_moves_money AFTER INSERT ON closure BEGIN
  UPDATE account SET
      held = held - (SELECT reserved FROM hold WHERE attempt_id = NEW.attempt_id),
      open_attempts = open_attempts - 1,
      held_by = NEW.attempt_id
    WHERE account_id = (SELECT buyer_id FROM attempt WHERE attempt_id = NEW.attempt_id);
  UPDATE key_use SET
      held = held - (SELECT reserved FROM hold WHERE attempt_id = NEW.attempt_id),
      open_attempts = open_attempts - 1,
      charged = charged + NEW.charge
    WHERE key_id = (SELECT key_id FROM attempt WHERE attempt_id = NEW.attempt_id);
  DELETE FROM hold WHERE attempt_id = NEW.attempt_id;
  INSERT INTO entry (account_id, cause_id, amount, at_us)
    SELECT buyer_id, attempt_id, -NEW.charge, NEW.closed_us
      FROM attempt WHERE attempt_id = NEW.attempt_id AND NEW.charge > 0;
  INSERT INTO entry (account_id, cause_id, amount, at_us)
    SELECT supplier_id, attempt_id, NEW.supplier_credit, NEW.closed_us
      FROM attempt WHERE attempt_id = NEW.attempt_id AND NEW.supplier_credit > 0;
  INSERT INTO entry (account_id, cause_id, amount, at_us)
    SELECT 'operator', NEW.attempt_id, NEW.fee, NEW.closed_us WHERE NEW.fee > 0;
END;

CREATE TRIGGER hold_ends BEFORE DELETE ON hold BEGIN
  SELECT RAISE(ABORT, 'hold-ends-with-its-closure')
    WHERE NOT EXISTS (SELECT 1 FROM closure WHERE attempt_id = OLD.attempt_id);
END;

-- Money

CREATE TRIGGER credit_is_made BEFORE INSERT ON credit BEGIN
  SELECT RAISE(ABORT, 'credit-exists')
    WHERE EXISTS (SELECT 1 FROM credit WHERE credit_id = NEW.credit_id);
  SELECT RAISE(ABORT, 'no-such-account') WHERE NOT EXISTS (
    SELECT 1 FROM account WHERE account_id = NEW.account_id AND kind <> 'outside');
  SELECT RAISE(ABORT, 'reversed-before') WHERE NEW.reverses IS NOT NULL
    AND EXISTS (SELECT 1 FROM credit WHERE reverses = NEW.reverses);
  SELECT RAISE(ABORT, 'not-its-reversal') WHERE NEW.reverses IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM credit c WHERE c.credit_id = NEW.reverses AND c.account_id = NEW.account_id
      AND c.amount IS -NEW.amount AND c.reverses IS NULL);
END;

CREATE TRIGGER credit_moves_money AFTER INSERT ON credit BEGIN
  INSERT INTO entry (account_id, cause_id, amount, at_us)
    VALUES (NEW.account_id, NEW.credit_id, NEW.amount, NEW.made_us);
  INSERT INTO entry (account_id, cause_id, amount, at_us)
    VALUES ('outside', NEW.credit_id, -NEW.amount, NEW.made_us);
END;

CREATE TRIGGER entry_moves_balance BEFORE INSERT ON entry BEGIN
  SELECT RAISE(ABORT, 'no-such-account')
    WHERE NOT EXISTS (SELECT 1 FROM account WHERE account_id = NEW.account_id);
  UPDATE account SET posted = posted + NEW.amount, posted_by = NEW.cause_id
    WHERE account_id = NEW.account_id;
END;

-- Posted moves only by what a closure or a credit owes this account, and only before the entry of it
-- exists: again a moment within a statement of ours.
CREATE TRIGGER account_posted_moves BEFORE UPDATE OF posted, posted_by ON account BEGIN
  SELECT RAISE(ABORT, 'money-without-cause') WHERE
    NEW.posted IS OLD.posted
    OR EXISTS (SELECT 1 FROM entry e
      WHERE e.account_id = NEW.account_id AND e.cause_id = NEW.posted_by)
    OR NEW.posted - OLD.posted IS NOT ifnull(
      (SELECT CASE NEW.account_id WHEN a.buyer_id THEN -c.charge
                                  WHEN a.supplier_id THEN c.supplier_credit
                                  WHEN 'operator' THEN c.fee END
        FROM closure c JOIN attempt a USING (attempt_id) WHERE c.attempt_id = NEW.posted_by),
      (SELECT CASE NEW.account_id WHEN c.account_id THEN c.amount WHEN 'outside' THEN -c.amount END
        FROM credit c WHERE c.credit_id = NEW.posted_by));
  SELECT RAISE(ABORT, 'balance-beyond-64-bits') WHERE typeof(NEW.posted) <> 'integer';
  SELECT RAISE(ABORT, 'overspend')
    WHERE NEW.posted < NEW.held AND NEW.kind IN ('buyer', 'supplier');
END;

-- Accounts begin with nothing and stay what they are; everything else is written once.

CREATE TRIGGER account_begins BEFORE INSERT ON account BEGIN
  SELECT RAISE(ABORT, 'account-exists')
    WHERE EXISTS (SELECT 1 FROM account WHERE account_id = NEW.account_id);
  SELECT RAISE(ABORT, 'account-begins-with-nothing')
    WHERE NEW.posted IS NOT 0 OR NEW.held IS NOT 0 OR NEW.open_attempts IS NOT 0
      OR NEW.posted_by IS NOT NULL OR NEW.held_by IS NOT NULL
      OR NEW.kind NOT IN ('buyer', 'supplier');
END;
CREATE TRIGGER account_stays BEFORE UPDATE OF account_id, kind ON account BEGIN
  SELECT RAISE(ABORT, 'append-only');
END;
CREATE TRIGGER account_remains BEFORE DELETE ON account BEGIN
  SELECT RAISE(ABORT, 'append-only');
END;
CREATE TRIGGER attempt_stays BEFORE UPDATE ON attempt BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER attempt_remains BEFORE DELETE ON attempt BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER hold_stays BEFORE UPDATE ON hold BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER outcome_stays BEFORE UPDATE ON outcome BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER outcome_remains BEFORE DELETE ON outcome BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER closure_stays BEFORE UPDATE ON closure BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER closure_remains BEFORE DELETE ON closure BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER credit_stays BEFORE UPDATE ON credit BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER credit_remains BEFORE DELETE ON credit BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER entry_stays BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER entry_remains BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER key_use_remains BEFORE DELETE ON key_use BEGIN SELECT RAISE(ABORT, 'append-only'); END;
