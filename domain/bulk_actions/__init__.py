"""Actions of a person on many products, in the background."""
