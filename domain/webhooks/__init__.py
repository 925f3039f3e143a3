"""Webhooks: signed deliveries of events in order, with retries."""
