"""From the headers and first rows of a feed to what its columns mean."""
