"""Exports: everything there is at one moment, as files to download."""
