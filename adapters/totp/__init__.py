"""One-time codes by time (RFC 6238)."""
