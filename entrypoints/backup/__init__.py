"""Backup of a running service (database, objects, secret), and restore to an empty service."""
