"""Fields that columns can have, meanings of headers, and names of kinds of furniture."""
