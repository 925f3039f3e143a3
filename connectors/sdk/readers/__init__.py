"""Readers of feeds in JSON, XML, JSON-LD and X12, for use by any connector."""
