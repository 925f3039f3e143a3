"""Whole flows over real processes: what a client sees, and what lies in the database afterwards."""
