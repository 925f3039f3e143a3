"""HTTP clients for all outbound requests, which reach vetted addresses only."""
