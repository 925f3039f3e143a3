"""Matching as it runs: after each run (`matching_stage`), what comes of pairs (`offering`, `merging`), and the judge (`judging`)."""
