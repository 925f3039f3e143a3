"""Webhooks: events POSTed to receivers, signed, in order, until they arrive."""
