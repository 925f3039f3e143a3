"""Connectors as plugins: list of permitted plugins, loading, and adapter from the connector SDK to the port."""
