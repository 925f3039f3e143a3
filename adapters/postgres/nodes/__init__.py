"""Connections to the PostgreSQL servers (nodes), and the placement of tenants on them."""
