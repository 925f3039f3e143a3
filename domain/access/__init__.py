"""Credentials, scopes and roles: who may do what."""
