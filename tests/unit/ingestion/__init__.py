"""Tests of reading, mapping and normalising feeds."""
