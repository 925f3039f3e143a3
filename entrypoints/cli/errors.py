"""What commands refuse to do."""


class CommandError(Exception):
    """The command cannot be carried out; the message says why and what to do."""
