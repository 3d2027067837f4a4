-- Governance: records of the later versions, under the same audit chain. Orion keeps them and
-- checks their ids, digests and references; what a kind means is its own version's matter.
-- `governed` holds what counts as memory and enters the store's digest (frames, executions,
-- approvals, admissions, decisions); `attendant` holds what stands beside it (proposals,
-- rejections, replays, repeats, packets, receipts). Both only grow.
CREATE TABLE governed (
    ordinal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    scope TEXT NOT NULL,
    subject TEXT,
    record BLOB NOT NULL
) STRICT;
CREATE INDEX governed_by_subject ON governed (kind, subject);

CREATE TABLE attendant (
    ordinal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    scope TEXT NOT NULL,
    subject TEXT,
    record BLOB NOT NULL
) STRICT;
CREATE INDEX attendant_by_subject ON attendant (kind, subject);

-- Which record names which cell, link or record: `id` of `kind` names `target`.
CREATE TABLE refs (
    target TEXT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (target, kind, id)
) STRICT, WITHOUT ROWID;
