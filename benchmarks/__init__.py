"""What the service costs, measured; each command prints one line a figure and asserts nothing."""
