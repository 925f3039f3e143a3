"""Use cases of vendor profiles and claims."""
