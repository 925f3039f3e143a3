"""Ingestion: mapping and normalisation of a source's rows to statements about products, with reports of problems."""
