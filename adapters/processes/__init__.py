"""Execution of functions on untrusted input, in separate processes with limited memory and time."""
