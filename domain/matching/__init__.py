"""Detection of items of different vendors that are the same article."""
