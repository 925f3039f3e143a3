"""The platform itself: what works and what does not."""
