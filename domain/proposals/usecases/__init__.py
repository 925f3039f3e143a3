"""Use cases of proposals."""
