"""Use cases of exports: requests by people, and jobs."""
