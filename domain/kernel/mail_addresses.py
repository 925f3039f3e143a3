"""Comparison of mail addresses; addresses that may belong to two people never compare equal."""

import string

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def address_key(email: str) -> str:
    """Return an address or domain in the form for comparison: only A to Z are lower-cased.

    Other case folding would equate addresses of different people, such as those with ß and ss, or with the kelvin sign
    and k.
    """
    return email.strip().translate(_LOWER)
