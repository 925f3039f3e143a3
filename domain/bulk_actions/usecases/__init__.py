"""Use cases of bulk actions: their start, and their execution in the background."""
