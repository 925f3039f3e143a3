"""Runs: one reading of a source, from fetch to stored changes."""
