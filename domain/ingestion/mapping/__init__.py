"""Mapping of columns to fields, from the headers and first rows of a feed."""
