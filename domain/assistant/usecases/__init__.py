"""Use cases of the assistant."""
