"""Subscriptions, cards, invoices and purchases of credit."""
