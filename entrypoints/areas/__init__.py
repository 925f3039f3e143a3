"""Areas of the service with their operations, jobs and ticks, and their registry."""
