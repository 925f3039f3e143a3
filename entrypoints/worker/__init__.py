"""The worker process: drains lanes of jobs and delivers to the endpoints of its shards."""
