"""Use cases of notifications: rules, digests from the event log, and sending."""
