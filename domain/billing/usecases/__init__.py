"""Use cases of billing."""
