"""Use cases of matching: the matching job, decisions about pairs and merges, and the judge."""
