"""JSON of every area: schemas of requests and responses, and rendering of domain objects."""
