"""Normalisation of email addresses for comparison; addresses that may belong to two people are never equal."""

import string

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def normalise_mail_address(email: str) -> str:
    """Normalise an email address or domain for comparison: only A to Z are changed to lower case.

    Other rules would make addresses of different people equal, such as those with ß and ss, or with the Kelvin sign and k.
    """
    return email.strip().translate(_LOWER)
