"""The process that reads feeds: it has no secret, no store and no network."""
