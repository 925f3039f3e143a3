"""Organisations, members, invitations and plans."""
