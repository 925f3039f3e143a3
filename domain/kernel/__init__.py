"""Shared basics of all areas: identifiers, money, tenancy, paging, errors."""
