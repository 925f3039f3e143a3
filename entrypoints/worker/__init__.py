"""The worker process: drains lanes of jobs."""
