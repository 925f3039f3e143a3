"""OpenID Connect as its client, on Authlib."""
