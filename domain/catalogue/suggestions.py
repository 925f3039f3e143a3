"""Suggestions of a category for a source's category path; if in doubt, nothing is suggested."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from domain.catalogue import categories
from domain.catalogue.categories import Category
from domain.catalogue.category_rules import CategoryPath, CategoryRules
from domain.catalogue.category_words import NAMES, NEUTRAL_WORDS
from domain.catalogue.search_terms import normalise_text, split_into_words

_MAX_PATH_CHARS = 300
"""Maximum number of characters of a path; nothing is suggested for a longer path."""
_MAX_PATH_WORDS = 16
"""Maximum number of words, and of levels, of a path; nothing is suggested for a path with more."""
_PLACE_CATEGORIES = ("outdoor", "kids", "bathroom")
"""Slugs of top-level categories that are places: if a path names one, the suggested category must belong to it."""
_PLACE_INDEPENDENT_CATEGORIES = ("rugs", "lighting", "decor")
"""Slugs of top-level categories that do not depend on a place."""
_CONJUNCTIONS = frozenset("and und et y e".split())
_SIGNS = re.compile(r"[&+,/|;]")

Phrase: TypeAlias = tuple[str, ...]
"""The words of a name in order: lower case, without accents, singular."""


class LearnedCategories:
    """Categories that the rules of other sources assign to equal paths, ignoring case and accents."""

    def __init__(self, others: Iterable[CategoryRules]) -> None:
        self._fold = cache(normalise_text)  # paths share most of their levels
        self._found: dict[CategoryPath, Counter[str]] = {}
        for rules in others:
            for rule in rules.rules:
                self._found.setdefault(self._key(rule.path), Counter())[rule.category] += 1

    def find_category(self, path: CategoryPath) -> str | None:
        """Return the category that most other sources assign to the path; None if no source does, or for a tie."""
        if not self._found:
            return None
        found = self._found.get(self._key(path), Counter()).most_common(2)
        return found[0][0] if found and (len(found) == 1 or found[0][1] > found[1][1]) else None

    def _key(self, path: CategoryPath) -> CategoryPath:
        return tuple(map(self._fold, path))


def suggest_category(path: Sequence[str], split_name: Callable[[str], Phrase] | None = None) -> str | None:
    """Return the ID of the category that the path's last level names in the context of the levels above, or None.

    Every word of the path must be known. Each word of the last level must belong to a category name, mean a place or be
    neutral. If the level contains several names, the result is their nearest common ancestor.

    Args:
        path: The source's category names, from the top down.
        split_name: Splits a name into words; by default `split_category_name`. Pass a cached version for many paths.
    """
    if not path or len(path) > _MAX_PATH_WORDS or sum(map(len, path)) > _MAX_PATH_CHARS:
        return None
    *higher, level = map(split_name or split_category_name, path)
    above = [word for words_above in higher for word in words_above]
    if len(above) + len(level) > _MAX_PATH_WORDS or not _load_vocabulary().words.issuperset((*above, *level)):
        return None
    joined = _load_vocabulary().joined_names.get(level)
    found = [joined] if joined else _find_in_level(above, level)
    common = _find_common_ancestor(found) if found else None
    return common.id if common and _belongs_to_place(common, {*above, *level}) else None


def split_category_name(text: str) -> Phrase:
    """Return the words of a name in order: lower case, without accents, singular."""
    words = split_into_words(_SIGNS.sub(" and ", text))
    return tuple(_to_singular(word) for word in words if not word.isdecimal())


def _to_singular(word: str) -> str:
    if word == "patio":
        return "outdoor"
    if len(word) < 4 or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word.removesuffix("s")


def _find_in_level(above: Sequence[str], level: Phrase) -> list[Category]:
    """Return the categories that a level names; empty if a name is unknown.

    Conjunctions separate the names: `Accent & Arm Chairs` means accent chairs and arm chairs.

    Args:
        above: The words of the levels above.
        level: The words of the level.
    """
    names: list[list[str]] = [[]]
    for word in level:
        names.append([]) if word in _CONJUNCTIONS else names[-1].append(word)
    found: list[Category] = []
    for name in filter(None, names):
        meant = _find_by_name(above, name) or (
            _find_by_name(above, [*name, level[-1]]) if name[-1] != level[-1] else []
        )
        if not meant:
            return []
        found += meant
    return found


def _find_by_name(above: Sequence[str], name: Sequence[str]) -> list[Category]:
    """Return the categories whose names consist of the words of `name`, preceded by words of the levels above if needed."""
    known, words = _load_vocabulary(), (*above, *name)
    possible = {
        phrase
        for word in name
        for phrase in known.phrases_by_last_word.get(word, ())
        if _occurs_in_order(phrase, words, len(above))
    }
    names = {phrase for phrase in possible if not known.place_words.issuperset(phrase)} or possible
    longest = [one for one in names if not any(set(one) < set(other) for other in names)]
    explained = {word for phrase in longest for word in phrase} | known.place_words
    significant = set(name) - NEUTRAL_WORDS or set(name)
    return [known.phrases[one] for one in longest] if significant <= explained else []


def _occurs_in_order(phrase: Phrase, words: Phrase, start: int) -> bool:
    """Return whether the phrase's words occur in this order among the words, the last one at index `start` or later."""
    position = len(words)
    for number, word in enumerate(reversed(phrase)):
        position = next((at for at in range(position - 1, -1, -1) if words[at] == word), -1)
        if position < (start if number == 0 else 0):
            return False
    return True


def _find_common_ancestor(categories_found: Iterable[Category]) -> Category | None:
    """Return the nearest category that is, or contains, each of the categories; None if there is none."""
    lines = [(*category.ancestors, category.id) for category in categories_found]
    shared = [ids[0] for ids in zip(*lines, strict=False) if len(set(ids)) == 1]
    return categories.category_by_id()[shared[-1]] if shared else None


def _belongs_to_place(category: Category, words: set[str]) -> bool:
    top = categories.category_by_id()[(*category.ancestors, category.id)[0]].slug
    named = {place for place in _PLACE_CATEGORIES if words & _load_vocabulary().places[place]}
    return top in _PLACE_INDEPENDENT_CATEGORIES or named <= {top}


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """Names of categories, indexed by their words.

    Attributes:
        joined_names: Names that contain a conjunction; they are recognised only if a level has no other words.
        phrases: Names that are recognised among other words.
        phrases_by_last_word: The names in `phrases`, by their last word.
        words: All words of names, and neutral words that may accompany them.
        places: The words that mean a place or a room, by its slug; they may accompany the names of its furniture.
        place_words: All words in `places`.
    """

    joined_names: Mapping[Phrase, Category]
    phrases: Mapping[Phrase, Category]
    phrases_by_last_word: Mapping[str, Sequence[Phrase]]
    words: frozenset[str]
    places: Mapping[str, frozenset[str]]
    place_words: frozenset[str]


@cache
def _load_vocabulary() -> _Vocabulary:
    by_slug = {category.slug: category for category in categories.category_by_id().values()}
    slugs: dict[Phrase, set[str]] = defaultdict(set)
    for line in NAMES.splitlines():
        slug, names = line.split(" | ")
        for name in names.split(", "):
            slugs[split_category_name(name)].add(slug)
    # a name of two categories is ambiguous
    named = {phrase: by_slug[slug] for phrase, (slug, *others) in slugs.items() if not others}
    phrases = {phrase: category for phrase, category in named.items() if _CONJUNCTIONS.isdisjoint(phrase)}
    phrases_by_last_word: dict[str, list[Phrase]] = defaultdict(list)
    for phrase in phrases:
        phrases_by_last_word[phrase[-1]].append(phrase)
    places = {
        place: frozenset(word for phrase, found in phrases.items() if found.slug == place for word in phrase)
        - NEUTRAL_WORDS
        for place in (*_PLACE_CATEGORIES, "bedroom", "office")
    }
    return _Vocabulary(
        joined_names={phrase: category for phrase, category in named.items() if phrase not in phrases},
        phrases=phrases,
        phrases_by_last_word=phrases_by_last_word,
        words=NEUTRAL_WORDS.union(*named),
        places=places,
        place_words=frozenset[str]().union(*places.values()),
    )
