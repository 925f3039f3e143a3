"""Outgoing mail to people, stored first and sent afterwards."""
