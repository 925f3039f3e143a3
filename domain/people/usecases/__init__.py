"""Use cases of authentication and accounts."""
