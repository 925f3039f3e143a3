"""Guarded HTTP access to other hosts, through which all outbound requests pass."""
