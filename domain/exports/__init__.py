"""Exports: snapshots of products or of an organisation as files to download."""
