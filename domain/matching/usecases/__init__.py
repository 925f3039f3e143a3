"""What runs over match pairs, and what people set of it."""
