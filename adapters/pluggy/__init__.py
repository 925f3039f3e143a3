"""Connectors as plugins: which may load, what loaded, and the bridge from their kit to the port."""
