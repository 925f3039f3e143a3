"""Use cases of stock checks (`service`), and the run that queries a source (`execution`)."""
