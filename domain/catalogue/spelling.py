"""Other words for the words of a search query: other forms of a word, and similar spellings."""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from string import ascii_lowercase
from typing import Any, Final

import snowballstemmer

_LANGUAGES: Final = ("english", "german")
_MIN_STEMMED_CHARS = 3
_MIN_TOLERANT_CHARS = 4
_MAX_TOLERANT_CHARS = 30
_ENDINGS: Final = ("", "s", "es", "ed", "ing", "y", "ies", "e", "n", "en", "er", "ern")
"""Endings of the forms of English and German words."""


@cache
def _get_stemmer(language: str) -> Any:
    return snowballstemmer.stemmer(language)


@lru_cache(maxsize=4096)
def _list_stems(word: str) -> tuple[str, ...]:
    """Return the stem of a word in each language."""
    return tuple(_get_stemmer(language).stemWord(word) for language in _LANGUAGES)


def list_possible_forms(word: str) -> set[str]:
    """Return words that consist of the word without its ending, or its stem, and another ending."""
    if not _MIN_STEMMED_CHARS <= len(word) <= _MAX_TOLERANT_CHARS or not word.isalpha():
        return set()
    bases = {*_list_stems(word), *(word.removesuffix(ending) for ending in _ENDINGS)}
    return {base + ending for base in bases if len(base) >= _MIN_STEMMED_CHARS for ending in _ENDINGS} - {word}


def select_forms(word: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that have the same stem as the word in one of the languages."""
    stems = _list_stems(word)
    return [
        candidate
        for candidate in candidates
        if any(one == other for one, other in zip(stems, _list_stems(candidate), strict=True))
    ]


def list_similar_spellings(word: str) -> Iterator[str]:
    """Yield all words that differ from a word by one letter more or less, another letter, or two exchanged letters.

    Yields nothing for short words, and for words with digits, which are sizes and codes.
    """
    if not _MIN_TOLERANT_CHARS <= len(word) <= _MAX_TOLERANT_CHARS or not word.isalpha():
        return
    letters = sorted({*ascii_lowercase, *word})
    for n in range(len(word) + 1):
        start, end = word[:n], word[n:]
        yield from (start + letter + end for letter in letters)
        if end:
            yield start + end[1:]
            yield from (start + letter + end[1:] for letter in letters if letter != end[0])
        if len(end) > 1 and end[0] != end[1]:
            yield start + end[1] + end[0] + end[2:]
