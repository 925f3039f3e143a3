"""Assistant: conversations in which a language model calls operations for a person."""
