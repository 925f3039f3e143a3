"""Use cases of sources, and test runs."""
