"""The areas of the service: each one's operations, jobs and ticks, and the registry of them all."""
