-- How many items bear a code, and a stem, is told where the code's list is: one row for what took three.
ALTER TABLE match_keys
    ADD COLUMN codes integer NOT NULL DEFAULT 0,
    ADD COLUMN stems integer NOT NULL DEFAULT 0;
UPDATE match_keys k SET codes = c.items FROM match_keys c
WHERE left(k.key, 1) = '#' AND c.key = '!' || substr(k.key, 2)
    AND c.org = k.org AND c.livemode = k.livemode AND c.source = k.source;
UPDATE match_keys k SET stems = c.items FROM match_keys c
WHERE left(k.key, 1) = '#' AND c.key = '?' || substr(k.key, 2)
    AND c.org = k.org AND c.livemode = k.livemode AND c.source = k.source;
DELETE FROM match_keys WHERE left(key, 1) IN ('!', '?');
-- Nobody looks merges up by what they rest on: it is read with the merges of a family.
DROP INDEX merges_resting;
-- Since when a variant waits: those that change again meanwhile have waited all the time.
ALTER TABLE match_queue ADD COLUMN queued_at timestamptz NOT NULL DEFAULT now();
