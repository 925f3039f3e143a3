"""What runs: serving the log to those who read it, and following it as it grows."""
