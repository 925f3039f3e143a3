"""Facets of products: properties by which lists of products are filtered, sorted and counted."""
