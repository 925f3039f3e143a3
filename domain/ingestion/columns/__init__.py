"""What a column of a given field adds to the draft of a row."""
