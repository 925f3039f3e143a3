"""What every backend of a port must do, told once and run on each."""
