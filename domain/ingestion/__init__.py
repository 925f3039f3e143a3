"""From a source's rows to statements about products: mapping, normalising, telling what could not be read."""
