"""Documentation site: pages, reference, events and error codes."""
