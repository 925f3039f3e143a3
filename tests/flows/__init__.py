"""Flows over real processes: responses to clients, and the resulting rows."""
