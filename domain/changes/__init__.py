"""The change feed: pages of the event log, and following it as it grows."""
