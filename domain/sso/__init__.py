"""Single sign-on: an organisation's own provider tells who its people are, for domains that it has shown to be its own."""
