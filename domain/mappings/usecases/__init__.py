"""What people do with mappings, and what runs leave of the tables that they read."""
