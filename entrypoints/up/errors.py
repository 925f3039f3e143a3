"""What stops `joinery up` in words that an operator can act on."""


class UpError(Exception):
    """Starting is not possible; the message is one plain sentence with its remedy."""
