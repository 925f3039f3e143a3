"""Naming the closest of the names or values that are known, at a bounded cost however many wrong ones a request holds."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

FEW = 10
"""As many are named all; of more, NAMED and how many more there are."""
FEW_NAMES = 25
"""Of names of fields and parameters as many are named all: whoever reads looks for one of them."""
NAMED = 8
LONGEST = 40
"""Characters of a word that is compared: nobody mistypes a name of more."""
_COMPARED = 100
"""Known words that one word is compared with: users choose them, and a comparison is quadratic in their length."""
LOOKS = 12
"""Comparisons with all known words that one request is worth."""


class Closeness:
    """Finds the closest words for the faults of one request."""

    def __init__(self) -> None:
        self._left = LOOKS

    def closest(self, word: str, known: Sequence[str]) -> str | None:
        """Return the known word that was probably meant, or None."""
        found = self._close(word, known, 1)
        return found[0] if found else None

    def listed(self, word: str, known: Iterable[str]) -> str:
        """Return the known words, closest first; of more than FEW words, the first ones and the number of the others."""
        words = list(known)
        if len(words) > FEW:
            close = self._close(word, words, NAMED)
            words = [*close, *(one for one in words if one not in close)]
        return listed(words)

    def nearest(self, word: str, known: Sequence[str]) -> list[str]:
        """Return up to three of the first 100 known words that resemble the word."""
        return self._close(word, known[:_COMPARED], 3, 0.4)

    def _close(self, word: str, known: Sequence[str], most: int, cutoff: float = 0.6) -> list[str]:
        if len(word) > LONGEST:
            return []
        plain = {_plain(one): one for one in known if len(one) <= LONGEST}
        if (same := plain.get(_plain(word))) is not None:
            return [same]
        if self._left <= 0:
            return []
        self._left -= 1
        return [plain[one] for one in get_close_matches(_plain(word), plain, most, cutoff)]


def listed(words: Sequence[str], few: int = FEW) -> str:
    """Return the words separated by commas; of more than `few` words, the first ones and the number of the others."""
    if len(words) <= few:
        return ", ".join(words)
    return f"{', '.join(words[:NAMED])} and {len(words) - NAMED} more"


def _plain(word: str) -> str:
    return word.strip().lower().replace("-", "_").replace(" ", "_")
