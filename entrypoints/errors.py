"""Errors whose messages tell operators the reason and the remedy."""


class OperatorError(Exception):
    """Base class of errors whose messages are shown to operators."""


class CommandError(OperatorError):
    """Failure of a command."""


class UpError(OperatorError):
    """Failure of `joinery up` to start."""


class SettingsError(OperatorError):
    """Missing or invalid setting; the message names the environment variable."""
