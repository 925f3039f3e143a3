-- What follows from a run later, such as a delivery, is traced as a part of it: what it was traced as (W3C's traceparent),
-- where anything is traced at all.

ALTER TABLE runs ADD COLUMN trace text;
