-- The reason of the failure of a bulk correction, as a sentence for the person.
ALTER TABLE correction_batches ADD COLUMN error text;
