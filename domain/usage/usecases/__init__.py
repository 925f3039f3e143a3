"""Reading, limiting and aggregation of usage."""
