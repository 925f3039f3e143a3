"""The HTTP edge: one table of operations, one pipeline, thin handlers."""
