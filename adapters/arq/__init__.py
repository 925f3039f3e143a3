"""The queue over arq and Redis: it wakes workers and holds nothing that the database does not."""
