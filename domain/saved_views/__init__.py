"""Saved views of the product list: filters, order, columns and layout under a name."""
