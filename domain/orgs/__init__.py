"""Organisations, their members and plans."""
