"""People: who they are whatever organisation they work in, how they show it, and their sessions."""
