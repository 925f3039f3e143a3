"""Readers of records in JSON and XML feeds, for any connector."""
