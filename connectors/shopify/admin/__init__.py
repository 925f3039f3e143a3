"""Connector for a shop's Admin API (GraphQL): data that its public list omits, and stock by location."""
