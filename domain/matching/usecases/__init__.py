"""Matching as it runs: the stage after each run that matches what has changed."""
