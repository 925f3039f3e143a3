"""Uploads: files that people hand in for a source."""
