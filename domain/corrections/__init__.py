"""Corrections that people make, one at a time and in bulk."""
