-- Erasure: an erased record stays in its row as a blank of its kind, and the audit says so.
-- A row here says that bytes of erased records may still lie in the file or its log: the next
-- opening overwrites them and takes the row away.
CREATE TABLE cleaning (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1)
) STRICT;
CREATE INDEX cells_erased ON cells (id) WHERE lifecycle = 'erased';
