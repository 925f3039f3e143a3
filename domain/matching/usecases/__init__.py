"""Use cases of matching: the stage after each run, pairs and merges, and the judge."""
