"""Builders of values, fakes and backends that several suites share."""
