"""Suggestions of the closest known names or values, at a bounded cost per request."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

FEW = 10
"""Up to this number all words are listed; beyond it NAMED, and the number of others."""
FEW_NAMES = 25
"""The same for names of fields and parameters, among which readers search for one."""
NAMED = 8
LONGEST = 40
"""Maximum characters of a word that is compared."""
_COMPARED = 100
"""Maximum known words per comparison: users choose them, and a comparison is quadratic in their length."""
LOOKS = 12
"""Maximum comparisons with all known words per request."""


class Closeness:
    """Finder of the closest words for the errors of one request."""

    def __init__(self) -> None:
        self._remaining = LOOKS

    def closest(self, word: str, known: Sequence[str]) -> str | None:
        """Return the word that was probably meant, or None."""
        found = self._find_close(word, known, 1)
        return found[0] if found else None

    def listed(self, word: str, known: Iterable[str]) -> str:
        """Return the known words, closest first: all of a few, else the first of them and the number of others."""
        words = list(known)
        if len(words) > FEW:
            close = self._find_close(word, words, NAMED)
            words = [*close, *(other for other in words if other not in close)]
        return listed(words)

    def nearest(self, word: str, known: Sequence[str]) -> list[str]:
        """Return up to three of the first 100 known words that resemble the word."""
        return self._find_close(word, known[:_COMPARED], 3, 0.4)

    def _find_close(self, word: str, known: Sequence[str], most: int, cutoff: float = 0.6) -> list[str]:
        if len(word) > LONGEST:
            return []
        word_by_form = {_normalise(w): w for w in known if len(w) <= LONGEST}
        if (same := word_by_form.get(_normalise(word))) is not None:
            return [same]
        if self._remaining <= 0:
            return []
        self._remaining -= 1
        return [word_by_form[form] for form in get_close_matches(_normalise(word), word_by_form, most, cutoff)]


def listed(words: Sequence[str], few: int = FEW) -> str:
    """Return the words separated by commas: all of a few, else the first of them and the number of others."""
    if len(words) <= few:
        return ", ".join(words)
    return f"{', '.join(words[:NAMED])} and {len(words) - NAMED} more"


def _normalise(word: str) -> str:
    return word.strip().lower().replace("-", "_").replace(" ", "_")
