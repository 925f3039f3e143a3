"""The JSON of every area: schemas and how domain objects become it."""
