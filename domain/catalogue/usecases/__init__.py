"""What readers ask of the catalogue (`service`), and what is written of it where products are merged (`writing`)."""
