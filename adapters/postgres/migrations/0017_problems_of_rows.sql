-- How many problems the row of a key had when it was read, so that they are told again while it does not change.

ALTER TABLE row_fingerprints ADD COLUMN problems integer NOT NULL DEFAULT 0;
