"""Parsers of cells: lengths, money, dates, words and others."""
