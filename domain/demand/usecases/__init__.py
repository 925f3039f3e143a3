"""Use cases of demand: counting of signals, release of cells, and statistics for vendors."""
