"""Nodes: connections to each PostgreSQL server, and the placement of tenants on them."""
