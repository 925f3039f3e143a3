"""Column mappings of sources: runs propose them, users confirm them, and later runs use confirmed ones."""
