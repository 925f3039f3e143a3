"""Benchmarks of the service; each command prints measurements, one per line, and has no pass or fail criteria."""
