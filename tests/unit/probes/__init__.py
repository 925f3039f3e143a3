"""What a probe makes of what it sees."""
