"""Use cases of OAuth: management of apps, consent, and tokens."""
