"""What runs: the use cases of endpoints and deliveries, and the engine that delivers."""
