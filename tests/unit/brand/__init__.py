"""Rules of vendor profiles and claims."""
