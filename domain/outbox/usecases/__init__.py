"""What runs: messages are put into the outbox, and the scheduler sends them."""
