"""What only a real PostgreSQL can prove: locks, horizons under concurrency, privileges."""
