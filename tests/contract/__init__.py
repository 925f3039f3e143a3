"""Contract tests of stores and services, on each configured PostgreSQL (conftest.py)."""
