"""What is decided of pairs: offered and merged (`offering`, `merging`), judged by a model (`judging`), and how that is set."""
