"""Stand-ins that answer by a script: for tests, and to try things out without a provider."""
