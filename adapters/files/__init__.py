"""Object store in a folder, for a single machine."""
