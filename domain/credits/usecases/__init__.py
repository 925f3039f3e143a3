"""Use cases of credit: the ledger, its settings, and the rates of models."""
