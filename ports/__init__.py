"""Ports: protocols of everything that the domain needs from outside."""
