"""Searching the site: operations, parameters, fields, events, error codes, and headings of the guides, best first."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice, takewhile
from typing import Final

MOST: Final = 20
"""Results that a search shows."""
LONGEST: Final = 100
"""Characters of a query that count."""
_PARTS: Final = 8
"""Different words, and parts of words, of a query that count."""
_TRIED: Final = 100
"""Words of the index that one begun word may stand for."""
_PLACES: Final = 400
"""Places that all the words which one begun word may stand for are looked up in."""
_BEGINNING: Final = 2
"""Letters that a begun word has at least; a single one is a whole word."""
_WORD: Final = re.compile(r"[a-z0-9]+")
_NAME: Final = re.compile(r"[a-z0-9]+(?:[_.-][a-z0-9]+)+")
_SNAKE: Final = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")
_IN_TITLE, _IN_NAMES, _IN_TEXT, _IN_WHOLE = 10.0, 8.0, 1.0, 0.5
_BEGUN: Final = 0.6
"""What a word counts that only begins with what was typed."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something that can be found. `weight` is how much sooner than others of the same words it is meant.

    `names` are words that people may call it by, `whole` is all that it says; neither is shown.
    """

    kind: str
    title: str
    url: str
    text: str = ""
    weight: float = 1.0
    names: str = ""
    whole: str = ""


def words_of(text: str) -> set[str]:
    """The words of a text, and names such as `external_id` whole beside their parts."""
    low = text.lower()
    return set(_WORD.findall(low)) | set(_NAME.findall(low)) | set(_SNAKE.findall(low))


def _weights(entry: Found) -> tuple[tuple[str, float], ...]:
    """What an entry is found by, and what that counts; what counts most stands last."""
    return (
        (entry.whole, _IN_WHOLE),
        (entry.text, _IN_TEXT),
        (entry.names, _IN_NAMES),
        (entry.title, _IN_TITLE),
    )


def _asked(query: str) -> Iterator[list[str]]:
    """The words that are typed, each as its parts; no part comes twice, and there are few, whatever is typed."""
    seen: set[str] = set()
    for typed in query.lower()[:LONGEST].split():
        parts = [typed] if _NAME.fullmatch(typed) else _WORD.findall(typed)
        fresh = [part for part in dict.fromkeys(parts) if part not in seen][: _PARTS - len(seen)]
        seen.update(fresh)
        if fresh or not parts:
            yield fresh
        if len(seen) == _PARTS:
            return


class Index:
    """Finds entries by whole and begun words; every word that is typed must be in an entry."""

    def __init__(self, entries: list[Found]) -> None:
        self._entries = entries
        self._by_word: dict[str, dict[int, float]] = {}
        for at, entry in enumerate(entries):
            for text, weight in _weights(entry):
                for word in words_of(text):
                    self._by_word.setdefault(word, {})[at] = weight
        self._words = sorted(self._by_word)
        self._titles = [entry.title.lower() for entry in entries]
        self._factors = [entry.weight / (1 + len(entry.title) / 200) for entry in entries]

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._entries)

    def search(self, query: str) -> list[Found]:
        """The best entries, the best one first."""
        scores: dict[int, float] | None = None
        for parts in _asked(query):
            found = self._weighed(parts)
            if scores is None:
                scores = found
            else:
                scores = {at: score + found[at] for at, score in scores.items() if at in found}
        exact = query.strip().lower()
        ranked = nsmallest(
            MOST, (scores or {}).items(), key=lambda pair: (-self._rank(pair[0], pair[1], exact), pair[0])
        )
        return [self._entries[at] for at, _ in ranked]

    def _rank(self, at: int, score: float, asked: str) -> float:
        return score * self._factors[at] * (3.0 if self._titles[at] == asked else 1.0)

    def _weighed(self, parts: Sequence[str]) -> dict[int, float]:
        """The entries with one of the parts, or with a word that begins with it."""
        best: dict[int, float] = {}
        for part in parts:
            for at, weight in self._of_part(part):
                if weight > best.get(at, 0.0):
                    best[at] = weight
        return best

    def _of_part(self, part: str) -> Iterator[tuple[int, float]]:
        whole = (part, f"{part}s")
        for word in whole:
            yield from self._by_word.get(word, {}).items()
        if len(part) < _BEGINNING:
            return
        left = _PLACES
        for word in islice(self._beginning_with(part), _TRIED):
            if word in whole:
                continue
            places = self._by_word[word]
            yield from ((at, weight * _BEGUN) for at, weight in islice(places.items(), left))
            left -= len(places)
            if left <= 0:
                return

    def _beginning_with(self, part: str) -> Iterator[str]:
        start = bisect_left(self._words, part)
        return takewhile(lambda word: word.startswith(part), islice(self._words, start, None))
