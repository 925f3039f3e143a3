"""Credentials, scopes and roles."""
