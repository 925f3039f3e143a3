"""Results of probes from responses."""
