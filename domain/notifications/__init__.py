"""Notifications about changes of the catalogue and of sources, by email, Slack and signed webhooks."""
