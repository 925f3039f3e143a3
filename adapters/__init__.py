"""Adapters: implementations of the ports, one folder or module per technology."""
