"""Source probes: what a website offers whoever wants its products, found out politely."""
