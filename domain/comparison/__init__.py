"""Comparison of products and vendors, and public links to comparisons (docs/console.md#comparison)."""
