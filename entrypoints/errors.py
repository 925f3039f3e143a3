"""Errors for operators, whose message names the reason and the remedy."""


class OperatorError(Exception):
    """Base class of errors for operators."""


class CommandError(OperatorError):
    """A command failed."""


class UpError(OperatorError):
    """`joinery up` failed to start."""


class SettingsError(OperatorError):
    """A setting is missing or invalid; the message names the variable."""
