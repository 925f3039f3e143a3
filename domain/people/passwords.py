"""Password rules (NIST SP 800-63B-4 §3.1.1): long enough and hard to guess, without composition rules."""

import unicodedata

SHORTEST = 10
LONGEST = 256
_LONGEST_TYPED = 4 * LONGEST
"""Maximum characters before normalisation, which makes at most four of one (UAX #15)."""
_SHORTEST_NAME = 4
FEWEST_GUESSES = 10**9
"""Minimum guesses that a password must withstand: far more than throttling permits, and years against a stolen hash (ADR 61)."""
SOON = "This password is easy to guess. Choose another one, such as three or four words."


def normalised(password: str) -> str:
    """Return a password in the form for hashing.

    NFKC lets keyboards that compose letters differently agree (RFC 8265).
    """
    return unicodedata.normalize("NFKC", password)


def typed(password: str) -> str:
    """Return a typed password in the form for hashing, or empty text if it is too long for any password."""
    return normalised(password) if len(password) <= _LONGEST_TYPED else ""


def refusal(password: str, email: str, name: str = "") -> str | None:
    """Return why the text cannot be the password of a person with this address and name, guessability aside, or None."""
    text = typed(password)
    # Excessive text is not normalised, because sorting combining marks takes quadratic time.
    if len(text) > LONGEST or len(password) > _LONGEST_TYPED:
        return f"Use at most {LONGEST} characters."
    if len(text) < SHORTEST:
        return f"Use at least {SHORTEST} characters, such as three or four words."
    folded = text.casefold()
    if any(own in folded for own in own_words(email, name)):
        return "The password contains your address or name. Choose another one."
    return None


def own_words(email: str, name: str) -> list[str]:
    """Return the parts of a person's address and name that a password must not contain."""
    local, _, domain = email.casefold().partition("@")
    parts = [email.casefold(), local, domain, *name.casefold().split()]
    return [part for part in parts if len(part) >= _SHORTEST_NAME]
