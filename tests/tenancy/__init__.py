"""Isolation of organisations and modes."""
