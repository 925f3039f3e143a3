"""Use cases of website checks, and their execution as jobs."""
