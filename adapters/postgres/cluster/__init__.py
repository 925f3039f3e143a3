"""Running a cluster of PostgreSQL servers (Citus): distributing the tables, telling where tenants lie, moving them."""
