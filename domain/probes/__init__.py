"""Website checks (probes): examination of a website as a possible source of products."""
