"""Use cases of inbound mail."""
