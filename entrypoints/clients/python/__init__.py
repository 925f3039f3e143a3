"""The Python package `joinery-client`: what of it is written by hand."""
