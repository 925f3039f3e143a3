"""What may be a password (NIST SP 800-63B-4 §3.1.1): long enough, not soon guessed, without rules of composition."""

import unicodedata

SHORTEST = 10
LONGEST = 256
_LONGEST_TYPED = 4 * LONGEST
"""Characters before they are composed: of one, four may be left at most (UAX #15)."""
_SHORTEST_NAME = 4
FEWEST_GUESSES = 10**9
"""What a password withstands at least: far more than throttling lets anybody try, and years against a stolen hash (ADR 61)."""
SOON = "That password is among those that are tried first; choose another, such as three or four words."


def normalised(password: str) -> str:
    """Return a password as it is hashed and compared: NFKC, because keyboards compose letters differently (RFC 8265)."""
    return unicodedata.normalize("NFKC", password)


def typed(password: str) -> str:
    """Return an entered password as it is compared; a text beyond the maximum length is treated as empty."""
    return normalised(password) if len(password) <= _LONGEST_TYPED else ""


def refusal(password: str, email: str, name: str = "") -> str | None:
    """Why that cannot be the password of who has this address and name, however it is guessed; None when it can."""
    text = typed(password)
    # What is far too long is not even normalised: marks are sorted in the square of their number.
    if len(text) > LONGEST or len(password) > _LONGEST_TYPED:
        return f"A password has at most {LONGEST} characters."
    if len(text) < SHORTEST:
        return f"A password has at least {SHORTEST} characters; three or four words do well."
    folded = text.casefold()
    if any(own in folded for own in own_words(email, name)):
        return "The password has your address or name in it; choose one that says nothing of you."
    return None


def own_words(email: str, name: str) -> list[str]:
    """Return the parts of a person's address and name that a password must not contain."""
    local, _, domain = email.casefold().partition("@")
    parts = [email.casefold(), local, domain, *name.casefold().split()]
    return [part for part in parts if len(part) >= _SHORTEST_NAME]
