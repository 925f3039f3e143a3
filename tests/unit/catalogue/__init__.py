"""The catalogue, without a store."""
