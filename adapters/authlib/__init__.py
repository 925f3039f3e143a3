"""OAuth protocol rules by Authlib, on plain values (ADR 53)."""
