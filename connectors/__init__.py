"""Built-in connectors, plugged in by the very hook that third parties use."""
