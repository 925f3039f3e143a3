"""Language models of providers, asked over HTTP; no provider's own library is needed."""
