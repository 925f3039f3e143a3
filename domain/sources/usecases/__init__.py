"""What runs: the use cases of sources, and trying one out."""
