"""Words that every area shares: identifiers, money, tenancy, paging, errors."""
