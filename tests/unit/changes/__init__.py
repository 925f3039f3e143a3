"""Following the event log."""
