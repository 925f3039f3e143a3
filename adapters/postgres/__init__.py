"""PostgreSQL adapter: stores, unit of work, event log and jobs."""
