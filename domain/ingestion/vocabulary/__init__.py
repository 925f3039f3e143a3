"""Fields of columns, and the words for them in headers."""
