"""Commands of the command line `joinery`."""
