"""Use cases of publication: the vendor's catalogue (`service`), licences (`licensing`), and background work (`execution`)."""
