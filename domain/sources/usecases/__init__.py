"""Use cases of sources, and source tests."""
