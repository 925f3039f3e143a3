"""Handwritten part of the Python package `joinery-client`."""
