"""Tests that need a real PostgreSQL: locks, visibility under concurrency, privileges."""
