"""Use cases of corrections."""
