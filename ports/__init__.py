"""What the domain asks of the world: Protocols of domain types."""
