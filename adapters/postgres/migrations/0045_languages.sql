-- A person's language in the console; NULL follows the browser.
ALTER TABLE users ADD COLUMN language text CHECK (length(language) BETWEEN 2 AND 10);
