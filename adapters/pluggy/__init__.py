"""Connectors as plugins: allowlist, loading, and the adapter from their kit to the port."""
