"""Use cases of agreements."""
