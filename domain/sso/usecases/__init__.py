"""What is set up, who is signed in by it, and who has to be."""
