"""Everything in one command: a supervisor of a database, a queue and the service's own processes."""
