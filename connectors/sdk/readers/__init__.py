"""Readers of records, as JSON and XML feeds hold them, for any connector to use."""
