"""One file an area: its rows of the operation table and their handlers."""
