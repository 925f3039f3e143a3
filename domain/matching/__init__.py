"""Which items of two vendors are the same thing: facts, candidates, evidence, probability."""
