"""Suggestions of the most similar known names or values, with a limited cost per request."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

MAX_LISTED = 10
"""Maximum number of words that are listed completely; of more words, the first are listed and the others counted."""
MAX_LISTED_NAMES = 25
"""Maximum number of names of fields and parameters that are listed completely; readers search such lists for a name."""
TRUNCATED_LIST_LENGTH = 8
"""Number of words that are listed if there are more words than the maximum."""
MAX_WORD_LENGTH = 40
"""Maximum length of a word that is compared."""
_MAX_COMPARED_WORDS = 100
"""Maximum number of known words that `find_similar` compares; the time is quadratic in the words' length."""
MAX_SEARCHES = 12
"""Maximum number of words per request for which similar words are searched."""


class WordSuggester:
    """Search for the known words that are most similar to an unknown word, for the errors of one request."""

    def __init__(self) -> None:
        self._remaining = MAX_SEARCHES

    def find_closest(self, word: str, known_words: Sequence[str]) -> str | None:
        """Return the most similar known word, or None if no known word is similar."""
        found = self._find_close(word, known_words, 1)
        return found[0] if found else None

    def format_by_similarity(self, word: str, known_words: Iterable[str]) -> str:
        """Return the known words as a text, the most similar first; of more than `MAX_LISTED`, only some and the number of others."""
        words = list(known_words)
        if len(words) > MAX_LISTED:
            close = self._find_close(word, words, TRUNCATED_LIST_LENGTH)
            words = [*close, *(other for other in words if other not in close)]
        return format_list(words)

    def find_similar(self, word: str, known_words: Sequence[str]) -> list[str]:
        """Return up to three known words that are similar to the word, most similar first.

        Only the first 100 known words are compared.
        """
        return self._find_close(word, known_words[:_MAX_COMPARED_WORDS], 3, 0.4)

    def _find_close(self, word: str, known_words: Sequence[str], max_results: int, cutoff: float = 0.6) -> list[str]:
        if len(word) > MAX_WORD_LENGTH:
            return []
        word_by_form = {_normalise(w): w for w in known_words if len(w) <= MAX_WORD_LENGTH}
        if (same := word_by_form.get(_normalise(word))) is not None:
            return [same]
        if self._remaining <= 0:
            return []
        self._remaining -= 1
        return [word_by_form[form] for form in get_close_matches(_normalise(word), word_by_form, max_results, cutoff)]


def format_list(words: Sequence[str], max_listed: int = MAX_LISTED) -> str:
    """Return the words separated by commas; of more than `max_listed` words, only the first and the number of others."""
    if len(words) <= max_listed:
        return ", ".join(words)
    return f"{', '.join(words[:TRUNCATED_LIST_LENGTH])} and {len(words) - TRUNCATED_LIST_LENGTH} more"


def _normalise(word: str) -> str:
    return word.strip().lower().replace("-", "_").replace(" ", "_")
