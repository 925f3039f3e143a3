"""Nodes: connections to each PostgreSQL server, and who is on which."""
