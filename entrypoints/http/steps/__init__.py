"""One step of the request pipeline per file, in the order of decisions.md §1."""
