"""The domain name system, asked with dnspython."""
