"""Nobody sees, changes or guesses what belongs to another organisation, or to the other mode."""
