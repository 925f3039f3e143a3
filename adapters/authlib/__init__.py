"""OAuth protocol rules by Authlib, without access to the database: rows are arguments, changes are results (ADR 53)."""
