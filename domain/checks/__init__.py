"""Stock checks: asking the sources of one variant what can be had of it now."""
