"""Usage of metered resources."""
