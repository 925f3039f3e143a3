"""Processes and their composition root."""
