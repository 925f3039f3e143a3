"""Request logs of organisations."""
