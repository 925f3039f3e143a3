"""The clients of the API that we ship: packages for Python and TypeScript, and a collection for Postman and Bruno."""
