"""Bounded reader of mail messages (RFC 5322, MIME)."""
