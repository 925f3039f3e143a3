"""Readers of columns, which fill the drafts of rows."""
