"""What rows have said so far, and the data that it becomes."""
