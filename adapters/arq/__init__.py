"""Queue over arq and Redis, which wakes workers; all jobs are stored in the database."""
