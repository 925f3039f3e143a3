"""Use cases of stock checks (`service`), and the run that asks a source (`execution`)."""
