"""Source probes: examination of a website as a possible source of products."""
