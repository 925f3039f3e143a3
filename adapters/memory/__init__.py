"""Every port in plain Python objects: what tests, authors of connectors and curious people run the whole service on."""
