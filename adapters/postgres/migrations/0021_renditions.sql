-- Smaller pictures that are stored beside an image; those stored until now have none.

ALTER TABLE images ADD COLUMN renditions jsonb NOT NULL DEFAULT '[]';
