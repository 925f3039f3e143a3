"""Inbound mail: what arrives at sources' addresses, who may send it, and what becomes of it."""
