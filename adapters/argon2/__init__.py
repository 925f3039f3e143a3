"""Argon2 (RFC 9106): hashing passwords."""
