"""How addresses of mail are compared: two that may be two people's are never taken for one."""

import string

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def address_key(email: str) -> str:
    """Return an email address or domain in the form in which it is compared: A to Z in lower case.

    Nothing else is folded: ß and ss, or the sign of the kelvin and k, stand in addresses that belong to two people.
    """
    return email.strip().translate(_LOWER)
