"""What is decided of pairs: offered and merged (`offering`, `merging`), and what people ask for (`service`)."""
