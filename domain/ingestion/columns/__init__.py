"""Reading of table rows by column: readers of cells, keys and families of rows."""
