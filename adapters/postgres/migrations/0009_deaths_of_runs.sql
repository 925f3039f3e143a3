-- How many attempts at a run ended without a word since anything of it was last stored.

ALTER TABLE runs ADD COLUMN deaths integer NOT NULL DEFAULT 0;
