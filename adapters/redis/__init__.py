"""Rate budgets shared through Redis."""
