"""One step of the request pipeline per file, in their order (docs/conventions.md#order-of-checks)."""
