"""The change feed: pages of event logs, and subscriptions to new events."""
