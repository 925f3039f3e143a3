"""The ledger of stored objects and the plan's storage quota."""
