"""What may be a password (NIST SP 800-63B-4 §3.1.1): long enough, not one that everybody tries, without rules of composition."""

import re
import unicodedata
from typing import Final

SHORTEST: Final = 10
LONGEST: Final = 256
_LONGEST_TYPED: Final = 4 * LONGEST
"""Characters before they are composed: of one, four may be left at most (UAX #15)."""
_FEWEST_DIFFERENT: Final = 5
_LONGEST_UNIT: Final = 5
_SHORTEST_NAME: Final = 4
_MOST_AROUND: Final = 3
"""Characters that may stand beside a word that everybody tries without making it another one."""

_STOOD_FOR: Final = str.maketrans("@4831!0$57", "aabeiiosst")
_ROWS: Final = (
    "qwertyuiopasdfghjklzxcvbnm,asdfghjkl",
    "qwertzuiopasdfghjklyxcvbnm",
    "azertyuiopqsdfghjklmwxcvbn",
    "abcdefghijklmnopqrstuvwxyz",
    "1234567890123456789012345678901234567890",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
    "1q2w3e4r5t6z7u8i9o0p",
    "1q2w3e4r5t6y7u8i9o0p",
    "q1w2e3r4t5y6u7i8o9p0",
)
COMMON: Final = frozenset(
    """
    password passwort passw0rd motdepasse contrasena senha parola wachtwoord losenord passphrase secret geheim changeme
    letmein welcome willkommen bienvenue welkom login signin admin administrator root master superuser user guest test
    testing tester demo default temp temporary access account office company business internet computer laptop server
    qwerty qwertz azerty asdf asdfgh zxcvbn abc abcd abcdef onetwothree iloveyou iloveu loveyou lovely love forever
    family mother father daughter sister brother friend friends princess prince queen king angel baby sweetheart honey
    sunshine summer winter spring autumn monday friday january february march april june july august september october
    november december football baseball basketball soccer hockey tennis golf liverpool chelsea arsenal barcelona madrid
    juventus yankees cowboys steelers lakers superman batman spiderman ironman starwars pokemon pikachu naruto matrix
    dragon monkey tiger lion panther eagle falcon phoenix wolf bear dolphin horse puppy kitten buster charlie jordan
    michael michelle jennifer jessica ashley amanda daniel thomas robert andrew joshua matthew anthony william nicole
    samantha hannah thunder lightning freedom liberty america american england london paris berlin newyork california
    chocolate cookie banana orange cheese pepper ginger coffee whatever nothing trustno trustnoone killer hunter ranger
    hacker ninja warrior soldier mustang ferrari porsche mercedes corvette harley yamaha diamond silver golden purple
    flower rainbow butterfly blessed jesus christ heaven lucky happy success money dollar million google facebook
    youtube instagram twitter linkedin microsoft windows apple samsung android amazon netflix spotify minecraft fortnite
    joinery furniture catalogue catalog supplier vendor showroom furnituretrade interior
    """.split()
)
"""Words that people make passwords of first, and this service's own."""


def normalised(password: str) -> str:
    """A password as it is hashed and compared: NFKC, so that keyboards that compose letters differently agree (RFC 8265)."""
    return unicodedata.normalize("NFKC", password)


def typed(password: str) -> str:
    """What somebody has typed, as it is compared; what is too long for any password is none, and costs no more to look at."""
    return normalised(password) if len(password) <= _LONGEST_TYPED else ""


def refusal(password: str, email: str, name: str = "") -> str | None:
    """Why that cannot be the password of who has this address and name, as a sentence; None when it can."""
    text = normalised(password)
    if len(text) < SHORTEST:
        return f"A password has at least {SHORTEST} characters; three or four words do well."
    if len(text) > LONGEST:
        return f"A password has at most {LONGEST} characters."
    folded = text.casefold()
    if any(own in folded for own in _own_words(email, name)):
        return "The password has your address or name in it; choose one that says nothing of you."
    if is_common(folded):
        return "That password is among those that are tried first; choose another, such as three or four words."
    return None


def is_common(folded: str) -> bool:
    """Whether it is one that is tried first: one of few characters, a run, a repetition, or a common word with trimmings."""
    if len(set(folded)) < _FEWEST_DIFFERENT or _repeats(folded):
        return True
    letters = folded.translate(_STOOD_FOR)
    plain = (re.sub(r"[^a-z]", "", text) for text in (folded, letters))
    return any(_of_common_words(word) for word in plain) or _is_run(folded)


def _own_words(email: str, name: str) -> list[str]:
    local, _, domain = email.casefold().partition("@")
    parts = [email.casefold(), local, domain, *name.casefold().split()]
    return [part for part in parts if len(part) >= _SHORTEST_NAME]


def _repeats(text: str) -> bool:
    """Whether a short unit makes up all of it, over and over."""
    return any(text == (text[:size] * (len(text) // size + 1))[: len(text)] for size in range(1, _LONGEST_UNIT + 1))


def _is_run(text: str) -> bool:
    """Whether nearly all of it runs along a row of keys or the alphabet, in either direction."""
    for row in (*_ROWS, *(row[::-1] for row in _ROWS)):
        for start in range(_MOST_AROUND + 1):
            for end in range(_MOST_AROUND + 1 - start):
                inner = text[start : len(text) - end]
                if len(inner) >= SHORTEST - _MOST_AROUND and inner in row:
                    return True
    return False


def _of_common_words(word: str) -> bool:
    """Whether the letters are one or two common words, but for a few around them."""
    if not word:
        return False
    if word in COMMON or any(word[:cut] in COMMON and word[cut:] in COMMON for cut in range(3, len(word) - 2)):
        return True
    return any(
        word[start : len(word) - end] in COMMON
        for start in range(_MOST_AROUND)
        for end in range(_MOST_AROUND - start)
        if len(word) - start - end >= 6
    )
