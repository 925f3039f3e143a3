"""Pillow: images decoded and made WebP, inside a bounded process only."""
