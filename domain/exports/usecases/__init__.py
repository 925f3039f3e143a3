"""Use cases of exports: requests by users, and jobs."""
