"""From a source's rows to statements about products: mapping, normalising, reporting what could not be read."""
