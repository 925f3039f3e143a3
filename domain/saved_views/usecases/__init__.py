"""Use cases of saved views."""
