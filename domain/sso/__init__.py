"""Single sign-on by an organisation's identity provider, for domains that the organisation has proven."""
