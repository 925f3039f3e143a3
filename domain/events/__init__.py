"""Events that report changes to consumers."""
