"""Use cases of the catalogue: reading (`service`), and writing with merged products (`writer`)."""
