"""Built-in connectors, registered by the same hook as those of third parties."""
