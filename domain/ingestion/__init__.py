"""Ingestion: mapping of columns to fields, and conversion of the rows of a feed to products with variants and offers."""
