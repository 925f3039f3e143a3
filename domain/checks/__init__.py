"""Stock checks: requests to the sources of one variant for its current stock."""
