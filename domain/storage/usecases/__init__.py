"""Giving back what nothing needs."""
