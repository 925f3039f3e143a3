"""Mail that the service sends to people: kept first, sent afterwards."""
