"""What AI agents may do with the service."""
