"""The console: pages for people, made on the server of the very operations that programs call."""
