"""Outgoing mail to users, which is stored first and sent afterwards."""
