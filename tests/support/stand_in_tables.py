"""Table of published products, which another migration creates; a table of that name in the schema `public` replaces it."""

import psycopg

SCHEMA = "stand_in"
_PUBLISHED_PRODUCTS = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC;
CREATE TABLE IF NOT EXISTS {SCHEMA}.published_products (
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    catalogue text COLLATE "C" NOT NULL,
    org text COLLATE "C" NOT NULL,
    PRIMARY KEY (livemode, id)
);
GRANT SELECT ON {SCHEMA}.published_products TO PUBLIC;
"""


def create_stand_in_tables(address: str) -> None:
    """Create the table in a database whose `search_path` has SCHEMA after `public`."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(_PUBLISHED_PRODUCTS.encode())


def publish_product(address: str, org: str, product: str, *, livemode: bool = True) -> None:
    """Publish a product of an organisation."""
    with psycopg.connect(address, autocommit=True) as connection:
        values = (livemode, product, f"cat_of_{org}", org)
        connection.execute("INSERT INTO published_products VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", values)
