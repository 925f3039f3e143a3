"""Sources: an organisation's connections to vendors' data."""
