"""Language models of providers over HTTP, without the providers' libraries."""
