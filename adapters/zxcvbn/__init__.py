"""How guessable a password is."""
