"""Processes and the one place that wires them."""
