"""Column mappings of sources: runs propose them, people confirm them, later runs learn from confirmed ones."""
