"""Writes the types and methods of the clients out of the API's description."""
