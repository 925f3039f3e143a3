"""Backups of a whole service: database, objects and secret, made while it runs, and restored into an empty place."""
