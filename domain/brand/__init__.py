"""Vendor profiles, their directory, and claims by which a vendor proves that a brand belongs to it."""
