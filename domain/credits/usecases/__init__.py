"""Prepaid credit."""
