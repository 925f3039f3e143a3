"""What is killed, cut off or full in the middle of work: afterwards everything is as if nothing had happened."""
