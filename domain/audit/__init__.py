"""The audit log: every change by anyone."""
