"""Use cases of probes, and their execution."""
