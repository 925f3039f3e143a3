"""Credentials sealed with AES-256-GCM."""
