"""Webhook endpoints and deliveries in PostgreSQL."""

CHANNEL = "joinery_webhooks"
