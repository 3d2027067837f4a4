-- Orion: cells with their revisions, links, the audit chain and the traces of recalls.
-- Revisions are only ever added. `record` holds canonical bytes; the other columns repeat parts of
-- it for look-ups, and verification compares them.
CREATE TABLE store (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    store_id TEXT NOT NULL
) STRICT;

CREATE TABLE cells (
    ordinal INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL CHECK (revision >= 1),
    scope TEXT NOT NULL,
    lifecycle TEXT NOT NULL,
    expires_at INTEGER,
    record BLOB NOT NULL,
    UNIQUE (id, revision)
) STRICT;
CREATE INDEX cells_that_expire ON cells (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE links (
    ordinal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    source_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    record BLOB NOT NULL
) STRICT;
CREATE INDEX links_by_source ON links (source_id);
CREATE INDEX links_by_target ON links (target_id);

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    operation TEXT NOT NULL,
    subject TEXT,
    generation INTEGER NOT NULL,
    record BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE INDEX audit_by_subject ON audit (subject);
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'audit records are append-only'); END;
CREATE TRIGGER audit_is_never_deleted BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'audit records are append-only'); END;

CREATE TABLE traces (
    ordinal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record BLOB NOT NULL
) STRICT;
