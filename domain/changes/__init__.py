"""Changes: following the event log, page by page or as it grows."""
