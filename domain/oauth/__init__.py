"""Apps that people sign in to with their account here, and what they are let do (OAuth 2.1)."""
