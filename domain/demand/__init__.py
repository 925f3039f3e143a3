"""Demand: signals from retailers' shops, and statistics for vendors over at least five organisations."""
