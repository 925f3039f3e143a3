"""What stops the demo, in a sentence that its user can act on."""


class DemoError(Exception):
    """The demo cannot go on; the message says why."""


class UnknownKey(DemoError):
    """The service does not know the remembered API key: it is another database than the one the demo was made in."""
