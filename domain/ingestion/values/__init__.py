"""Parsers of cells with sizes, weights, money, dates, stock, image URLs and text."""
