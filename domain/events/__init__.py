"""Events: every change, as consumers hear of it."""
