"""Background jobs, stored in the transaction of the change that needs them."""
