"""Status and health of the service itself."""
