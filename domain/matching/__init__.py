"""Matching of items of different vendors: features, candidates, evidence, probability."""
