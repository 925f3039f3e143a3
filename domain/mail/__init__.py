"""Inbound mail: acceptance of messages at sources' addresses, and their processing."""
