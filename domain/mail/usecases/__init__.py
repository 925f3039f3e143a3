"""What runs for inbound mail."""
