"""Sources, without a store."""
