"""OpenID Connect relying party on Authlib."""
