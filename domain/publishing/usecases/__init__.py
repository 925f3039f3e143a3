"""Use cases of publication: the vendor's catalogue (`service`), licences (`licences`), and background work (`execution`)."""
