"""Rules for passwords (NIST SP 800-63B-4 §3.1.1): long enough and hard to guess, without rules on their composition."""

import unicodedata

MIN_PASSWORD_CHARS = 10
MAX_PASSWORD_CHARS = 256
_MAX_ENTERED_CHARS = 4 * MAX_PASSWORD_CHARS
"""Maximum number of characters before normalisation, which may shorten text to a quarter (UAX #15)."""
_MIN_PERSONAL_WORD_CHARS = 4
MIN_GUESSES = 10**9
"""Minimum number of guesses needed to find a password (ADR 61); with a stolen hash, that many guesses take years."""
EASY_TO_GUESS = "This password is easy to guess. Choose another one, such as three or four words."


def normalise_password(password: str) -> str:
    """Return the password normalised for hashing (Unicode NFKC)."""
    # Keyboards encode the same letter differently (RFC 8265).
    return unicodedata.normalize("NFKC", password)


def normalise_entered_password(password: str) -> str:
    """Return the entered password normalised for hashing, or an empty string if it is too long."""
    return normalise_password(password) if len(password) <= _MAX_ENTERED_CHARS else ""


def describe_password_refusal(password: str, email: str, name: str = "") -> str | None:
    """Return why the user cannot use the password, such as its length; None if nothing is wrong.

    Whether the password is easy to guess is checked elsewhere (GuessEstimator).

    Args:
        password: The password as entered.
        email: The user's email address, which the password must not contain.
        name: The user's name, which the password must not contain.
    """
    text = normalise_entered_password(password)
    # Excessive text is not normalised, because sorting combining marks takes quadratic time.
    if len(text) > MAX_PASSWORD_CHARS or len(password) > _MAX_ENTERED_CHARS:
        return f"Use at most {MAX_PASSWORD_CHARS} characters."
    if len(text) < MIN_PASSWORD_CHARS:
        return f"Use at least {MIN_PASSWORD_CHARS} characters, such as three or four words."
    lower_case = text.casefold()
    if any(word in lower_case for word in list_personal_words(email, name)):
        return "The password contains your email address or name. Choose another one."
    return None


def list_personal_words(email: str, name: str) -> list[str]:
    """Return the words of a user's email address and name that the user's password must not contain, in lower case."""
    local, _, domain = email.casefold().partition("@")
    parts = [email.casefold(), local, domain, *name.casefold().split()]
    return [part for part in parts if len(part) >= _MIN_PERSONAL_WORD_CHARS]
