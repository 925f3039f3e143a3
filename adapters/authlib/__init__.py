"""The grammar of OAuth by Authlib, on plain values (ADR 53)."""
