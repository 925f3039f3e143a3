"""Reading and following the event log."""
