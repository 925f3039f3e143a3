"""Which concepts a word of a header stands for: looked up, taken apart when it is a compound, or spelt a little wrong."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from domain.ingestion.vocabulary.headings import plain_words
from domain.ingestion.vocabulary.lexicon import commerce, measures, texts

Concepts = frozenset[str]
_NONE: Final[Concepts] = frozenset()
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_LINKS: Final = ("", "s", "n", "e", "es", "en", "er")
"""What German, Dutch and the Nordic languages put between the parts of a compound."""
_SHORTEST_PART: Final = 3
_SHORTEST_COMPOUND: Final = 6
_SHORTEST_MISSPELT: Final = 5
_LONGEST_WORD: Final = 40
_PART_ENDING: Final = 3
_MOST_PARTS: Final = 4
_ENDING: Final = 8
_LONGEST_PHRASE: Final = 3
_ENDINGS: Final = (
    ("as", "os", "es", "is", "a", "o", "e", "i"),
    ("", "o", "a", "e"),
    (
        "erna",
        "arna",
        "orna",
        "ene",
        "ene",
        "eren",
        "en",
        "et",
        "er",
        "ar",
        "na",
        "ne",
        "ta",
        "es",
        "em",
        "e",
        "s",
        "n",
        "r",
        "t",
    ),
    ("", "e", "a"),
)
"""How words are inflected: Romance endings and what may stand for them, then Germanic ones."""
_SHORTEST_BASE: Final = 4
_NO_PARTS: Final = frozenset(
    "den der die das des per pro par por art nom cat doc rea een van age set let top oil ref".split()
)
"""Words too common inside other words to be a part of a compound."""
_STOP: Final = frozenset(
    "of the for to at by with is are as a an and or und oder des der die das den dem im von für fuer zur zum mit du de la le les l"
    " d aux au sur et ou het een der van voor met en y o del los las el para con da do dos das e di della dei delle per il lo gli"
    "  dell dall nell sull all o su för av med til ja i z w na ze в на по и для от из с к со ks est estimated approximate n si en exprime exprimee exprimes exprimees expressed angegeben espresso espressa expresado"
    " expresada uitgedrukt".split()
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a header with the concepts it may stand for; `sure` unless it had to be spelt anew."""

    text: str
    concepts: Concepts
    sure: bool = True


def _entries() -> Iterator[tuple[str, str]]:
    for entries in (measures.ENTRIES, commerce.ENTRIES, texts.ENTRIES):
        for concept, words in entries:
            for word in words.split("|"):
                yield word.strip(), concept


def _spellings(word: str) -> Iterable[str]:
    """A word without accents, and with its umlauts written out."""
    return {plain_words(word), plain_words(word.translate(_UMLAUTS))}


def _index() -> tuple[dict[str, Concepts], dict[str, Concepts]]:
    words, stems = dict[str, set[str]](), dict[str, set[str]]()
    for entry, concept in _entries():
        table = stems if entry.endswith("*") else words
        for spelling in _spellings(entry.rstrip("*")):
            table.setdefault(spelling, set()).add(concept)
    return ({word: frozenset(found) for word, found in words.items()}, {s: frozenset(f) for s, f in stems.items()})


_WORDS, _STEMS = _index()
_SHORTEST_STEM: Final = min(map(len, _STEMS))
_LONGEST_PART: Final = max(map(len, _WORDS))


@lru_cache(maxsize=16384)
def known(word: str) -> Concepts:
    """The concepts of a word (or words, parted by one blank) as it is written; empty when it is not known."""
    found = _WORDS.get(word, _NONE)
    for end in range(max(_SHORTEST_STEM, len(word) - _ENDING), len(word) + 1):
        ending = word[end:]
        if " " not in ending and (len(ending) < _SHORTEST_PART or ending not in _WORDS):
            found |= _STEMS.get(word[:end], _NONE)
    return found


def is_filler(word: str) -> bool:
    """Whether a word says nothing by itself (`of`, `für`)."""
    return word in _STOP


def _is_part(word: str) -> bool:
    """Whether a compound may have this part: a known word, or a stem with an ending that is short."""
    if word in _NO_PARTS:
        return False
    return word in _WORDS or any(word[: len(word) - end] in _STEMS for end in range(_PART_ENDING + 1))


def _parts(word: str) -> tuple[str, ...] | None:
    """The known words that a compound consists of, as few as possible; None when it is none, or has more than four.

    From the end on: `after` has, for each place where a part may end, the parts that follow it. Of most words there is no
    such place but the end, so a word costs little more than its length.
    """
    after: dict[int, tuple[str, ...]] = {len(word): ()}
    whole: tuple[str, ...] | None = None
    for start in range(len(word) - _SHORTEST_PART, -1, -1):
        best: tuple[str, ...] | None = None
        for end, rest in after.items():
            if _SHORTEST_PART <= end - start <= _LONGEST_PART and (best is None or len(rest) < len(best)):
                best = (word[start:end], *rest) if _is_part(word[start:end]) else best
        if best is None:
            continue
        whole = best if start == 0 else whole
        for link in _LINKS:
            end = start - len(link)
            if end > 0 and word.startswith(link, end) and len(best) < len(after.get(end, best + best)):
                after[end] = best
    return whole if whole and 1 < len(whole) <= _MOST_PARTS else None


@cache
def _misspellings() -> dict[str, str]:
    """Each known word with one letter left out, and the word; None-like blanks where two words would be meant."""
    table: dict[str, str] = {}
    for word in _WORDS:
        if len(word) < _SHORTEST_MISSPELT or " " in word:
            continue
        for at in range(1, len(word)):
            less = word[:at] + word[at + 1 :]
            table[less] = "" if table.get(less, word) != word and _WORDS[table[less] or word] != _WORDS[word] else word
    return table


def _respelt(word: str) -> Concepts:
    """The concepts of the one known word that differs by a letter left out, put in or swapped."""
    if len(word) < _SHORTEST_MISSPELT or len(word) > _LONGEST_WORD or not word.isalpha():
        return _NONE
    table = _misspellings()
    meant = {table[word]} if word in table else set()
    if len(word) >= _SHORTEST_MISSPELT:
        for at in range(1, len(word)):
            less = word[:at] + word[at + 1 :]
            if less in _WORDS and len(less) >= _SHORTEST_MISSPELT - 1:
                meant.add(less)
            if (other := table.get(less)) and _one_apart(word, other):
                meant.add(other)
    found = {_WORDS[one] for one in meant if one}
    return next(iter(found)) if len(found) == 1 and "" not in meant else _NONE


def _inflected(word: str) -> Concepts:
    """The concepts of the known word that differs by its ending alone (`previsto`, `prevista`; `Lager`, `Lagers`)."""
    endings, bases = _ENDINGS[::2], _ENDINGS[1::2]
    for group, others in zip(endings, bases, strict=True):
        for ending in group:
            stem = word.removesuffix(ending)
            if stem == word or len(stem) < _SHORTEST_BASE:
                continue
            for other in others:
                if other != ending and (found := _WORDS.get(stem + other)):
                    return found
    return _NONE


def _one_apart(one: str, other: str) -> bool:
    """Whether words differ by two neighbouring letters that have changed places.

    A letter that is another one makes another word too often (`swatch`, `switch`).
    """
    if len(one) != len(other):
        return False
    at = [place for place, (left, right) in enumerate(zip(one, other, strict=True)) if left != right]
    return len(at) == 2 and at[1] == at[0] + 1 and one[at[0]] == other[at[1]] and one[at[1]] == other[at[0]]


@lru_cache(maxsize=16384)
def words_of(text: str) -> tuple[Word, ...]:
    """The words of a heading in plain form (`headings.plain_words`); compounds come as their parts, fillers not at all."""
    given = text.split()
    out: list[Word] = []
    at = 0
    while at < len(given):
        for size in range(min(_LONGEST_PHRASE, len(given) - at), 1, -1):
            phrase = " ".join(given[at : at + size])
            if found := known(phrase):
                out.append(Word(phrase, found))
                at += size
                break
        else:
            out.extend(_read(given[at]))
            at += 1
    return tuple(out)


def _read(word: str) -> Iterator[Word]:
    if found := known(word):
        yield Word(word, found)
    elif word in _STOP or word.isdecimal():
        return
    elif word.isalpha() and (found := _inflected(word)):
        yield Word(word, found)
    elif _SHORTEST_COMPOUND <= len(word) <= _LONGEST_WORD and (parts := _parts(word)):
        yield from (Word(part, known(part)) for part in parts)
    else:
        respelt = _respelt(word)
        yield Word(word, respelt, sure=not respelt)
