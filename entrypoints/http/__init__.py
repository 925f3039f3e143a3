"""HTTP server of the API: one pipeline of checks for all operations, and its ASGI applications."""
