"""Parsers of cells with sizes, weights, money, dates, stock, picture URLs and text."""
