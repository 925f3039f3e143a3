"""Uploads: files for a source."""
