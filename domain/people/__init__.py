"""Users, their credentials and their sessions, independent of organisations."""
