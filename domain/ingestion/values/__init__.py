"""Reads the text of one cell: lengths, money, dates, words and so on."""
