"""Reading, limiting and folding of usage."""
