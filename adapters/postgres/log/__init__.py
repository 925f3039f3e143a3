"""Reading event logs: how far they go, and pages of them."""
