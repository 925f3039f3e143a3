"""Runs: imports of a source, from the fetch to the stored changes."""
