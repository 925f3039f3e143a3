"""What people ask for (`service`), and the run that asks a source (`execution`)."""
