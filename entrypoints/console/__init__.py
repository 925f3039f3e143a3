"""The console: web pages for people, which use the same operations as programs do."""
