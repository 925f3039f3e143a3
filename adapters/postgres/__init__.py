"""PostgreSQL keeps every promise: stores, unit of work, event log and jobs."""
