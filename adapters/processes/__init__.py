"""Functions run on hostile input in separate processes with limited memory and time."""
