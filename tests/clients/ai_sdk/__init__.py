"""The assistant with the official client of the AI SDK."""
