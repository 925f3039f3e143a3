"""Built-in connectors, which are registered by the same hook as connectors of third parties."""
