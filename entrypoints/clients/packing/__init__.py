"""Makes the files that people install and import: the same input gives the same bytes."""
