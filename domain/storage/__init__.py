"""What lies in the object store, and what of it counts against a plan."""
