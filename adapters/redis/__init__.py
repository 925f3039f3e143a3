"""Rate limits that all processes share through Redis."""
