"""Single sign-on by an organisation's identity provider, for mail domains whose ownership the organisation has verified."""
