"""Rate budgets in the memory of one process, for a service without Redis."""
