"""Prepaid credit of organisations, from which the use of language models is paid (docs/credits.md)."""
