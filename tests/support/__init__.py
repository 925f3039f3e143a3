"""Builders of values and makers of backends that several suites share."""
