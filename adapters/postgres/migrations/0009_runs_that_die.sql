-- How many attempts at a run ended without a word since anything of it was last stored; and which lanes of each
-- organisation are under way or due, so that none takes them all.

ALTER TABLE runs ADD COLUMN deaths integer NOT NULL DEFAULT 0;

CREATE INDEX jobs_under_way ON jobs (org, lane) WHERE dispatched_at IS NOT NULL;
CREATE INDEX jobs_of_org ON jobs (org, run_at);
