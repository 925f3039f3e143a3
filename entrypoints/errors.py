"""Errors whose message tells an operator, in a sentence, what is wrong and what to do."""


class OperatorError(Exception):
    """What was asked for cannot be done."""


class CommandError(OperatorError):
    """A command cannot be carried out."""


class UpError(OperatorError):
    """`joinery up` cannot start."""


class SettingsError(OperatorError):
    """A setting is missing or wrong; the message names the variable."""
