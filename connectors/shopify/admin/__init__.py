"""Connector for the Admin API (GraphQL) of a Shopify shop, which provides costs, weights and stock by location."""
