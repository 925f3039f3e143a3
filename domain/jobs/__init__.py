"""Work to be done later, as rows of the same transaction as what it is about."""
