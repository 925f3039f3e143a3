"""Clients of the API: packages for Python and TypeScript, and a collection for Postman and Bruno."""
