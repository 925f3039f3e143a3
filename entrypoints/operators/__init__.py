"""The page for whoever runs the service, on a port of its own on the same machine."""
