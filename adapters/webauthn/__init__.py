"""Web Authentication (W3C, level 3): passkeys."""
