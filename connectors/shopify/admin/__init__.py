"""A shop's Admin API (GraphQL): what its public list does not show, and stock by location."""
