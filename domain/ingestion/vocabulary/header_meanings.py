"""Possible meanings of column headers: fields with scores, best first.

A header is looked up in `data/phrases.toml`, complete and without a vendor's name, and is also interpreted word by word. Each interpretation
has a score, which is lower if words are ignored, and the best one is used.

Each word is looked up in `data/lexicon.toml`, split if it is a compound, or corrected if it is misspelt. The first rule in
`data/rules.csv` that fits the concepts of all words determines the field.

Headers that no rule fits are classified by multinomial logistic regression with the 3- to 5-grams of words, whole words
and concepts as features. `python -m benchmarks.header_weights` computes the weights (`data/weights.json`) from the vocabulary and
headers labelled by hand.
"""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final

from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from domain.ingestion.data import invert_table, load_csv_rows, load_toml, read_data_file, split_phrases
from domain.ingestion.values.quantities import parse_length_unit, parse_weight_unit
from domain.ingestion.values.text import clean_line
from domain.ingestion.vocabulary.fields import IGNORE, KEYS, MONEY, parse_declared_field
from domain.kernel.money import EXPONENTS
from domain.kernel.units import INCHES_BY_UNIT, POUNDS_BY_UNIT

# Normalisation of headers for look-ups.


_LISTS = {name: frozenset(split_phrases(text)) for name, text in load_toml("words").items()}
_SMALL = "a-zß-öø-ÿа-яё"
_LARGE = "A-ZÀ-ÖØ-ÞА-ЯЁ"
_CAMEL = re.compile(rf"(?<=[{_SMALL}])(?=[{_LARGE}])|(?<=[{_LARGE}])(?=[{_LARGE}][{_SMALL}])")
_HUNGARIAN = re.compile(r"^[a-z](?=[A-Z][a-z])")
_BRACKET = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_NOISE = re.compile(r"[^\w%]+|_+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_LETTERS = str.maketrans(
    {"ß": "ss", "ł": "l", "Ł": "l", "ø": "o", "Ø": "o", "æ": "ae", "Æ": "ae", "đ": "d", "ı": "i", "œ": "oe"}
)
_DIGITS = re.compile(r"(?<![a-z])\d{1,2}(?![a-z])|(?<=[a-z])\d{1,2}\b")
_NUMBER_SIGN = re.compile(r"(?<=[a-z])\s?#(?![\d\w])", re.I)
_PER = re.compile(
    r"/\s{0,4}(?=(?:pkg|ctn|carton|box|pallet|container|karton|ve|colis|doos|bulto|collo|embalaje|caja|emballage|imballo|krt|kartong|sq|sqft|sqm|m2|yd|yard|lm)\b)",
    re.I,
)
_NAMESPACE = re.compile(r"^(?:g:|\{[^}]*\})")
_METAFIELD = re.compile(r"\((product|variant)\.metafields\.[^)]{0,300}\)", re.I)
_SCOPES = frozenset(
    "package gross master casepack seat arm back leg frame mattress inner old sale certificate energy customs".split()
)
"""Concepts of names in a path (`carton::width`, `seat::height`) without which the last name has another meaning."""
_UNSPECIFIC_CONCEPTS = frozenset("url value unit id type code text name date".split())
"""Concepts of the last name in a path that have no meaning without the names before it (`image::url`)."""
_DIAMETER_SIGN = re.compile(r"(?<![^\W\d_])[Øø⌀∅](?![^\W\d_])")
_ABBREVIATION = re.compile(r"(?<![^\W\d_])([^\W\d_]{2,20})\.(?!\d)")
_MIN_ABBREVIATION_CHARS = 3
_LETTER_SETS: Final[Sequence[Mapping[str, str]]] = load_toml("abbreviations")["letters"]
_DIMENSION_LETTER = f"([{''.join(sorted(set().union(*_LETTER_SETS)))}])"
_DIMENSION_ORDER = re.compile(
    rf"(?<![^\W_]){_DIMENSION_LETTER}\s?[x×х*/,]\s?{_DIMENSION_LETTER}(?:\s?[x×х*/,]\s?{_DIMENSION_LETTER})?(?![^\W_])",
    re.I,
)
_CURRENCY_SIGNS = {"$": "usd", "€": "eur", "£": "gbp"}
_CYRILLIC_UNITS = {"мм": "mm", "см": "cm", "кг": "kg", "г": "g", "гр": "g"}
_MAX_PLAIN_CHARS = 1_000
_MAX_SLASHED = 3


@dataclass(frozen=True, slots=True)
class NormalisedHeader:
    """Header in plain words, and the unit, currency and number in it.

    Attributes:
        lookup_texts: The texts to look up as phrases, best first, also without units and with `#` in place of numbers.
        number: The first number in the header, or None.
        unit: The unit in the header, or None.
        currency: The currency in the header, or None.
        metafield_owner: The owner of the Shopify metafield that the header names: `product` or `variant`; None for other headers.
        plain_texts: The texts to interpret word by word: all words, those outside brackets, and those between slashes.
    """

    lookup_texts: tuple[str, ...]
    number: int | None = None
    unit: str | None = None
    currency: str | None = None
    metafield_owner: str | None = None
    plain_texts: tuple[str, ...] = ()


def normalise_words(text: str) -> str:
    """Return the text in lower case without accents and punctuation, with one space between words."""
    text = _INVISIBLE.sub("", text[:_MAX_PLAIN_CHARS])
    decomposed = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    return _NOISE.sub(" ", letters.lower()).strip()


def find_sides_of_letters(letters: frozenset[str]) -> Mapping[str, str]:
    """Return the side that each letter stands for, such as `depth` for `t` of `b, t, h`; empty if no language has all letters."""
    return next((sides for sides in _LETTER_SETS if letters <= sides.keys()), {})


def _find_dimension_order(text: str) -> tuple[str, re.Match[str]] | None:
    """Find an order of dimensions (`B x T x H`) in a header; return its letters as in `wdh` and the match, or None."""
    for match in _DIMENSION_ORDER.finditer(text):
        letters = [letter.lower() for letter in match.groups() if letter]
        sides = find_sides_of_letters(frozenset(letters))
        # `W/H` is also a warehouse.
        is_order = len(letters) > 2 or match[0][1:-1].strip() not in ("/", ",")
        if sides and is_order and len(set(letters)) == len(letters):
            is_usual = _DIMENSION_LETTERS.keys() >= set(letters)
            return "".join(letters if is_usual else (sides[letter][0] for letter in letters)), match
    return None


_ORDER_OF_WORDS = re.compile(
    r"(?<![^\W\d_])([^\W\d_]{2,12})\.?\s*[x×х*]\s*([^\W\d_]{2,12})\.?(?:\s*[x×х*]\s*([^\W\d_]{2,12})\.?)?(?![^\W\d_])",
    re.I,
)
_WORDS_BY_SIDE = {
    side: frozenset(map(normalise_words, split_phrases(load_toml("lexicon")[side])))
    for side in ("width", "depth", "height", "length")
}


def _find_order_of_words(text: str) -> tuple[str, re.Match[str]] | None:
    """Find an order of dimensions in words (`dł. x szer. x wys.`) in a header; return its letters as in `lwh` and the match, or None."""
    for match in _ORDER_OF_WORDS.finditer(text):
        sides = [_find_side(normalise_words(word)) for word in match.groups() if word]
        if all(sides) and len(set(sides)) == len(sides):
            return "".join(side[0] for side in sides), match
    return None


def _find_side(word: str) -> str:
    """Return the side (`width`, `depth`, `height` or `length`) that a word means or abbreviates; empty for other words."""
    found = {side for side, words in _WORDS_BY_SIDE.items() if word in words}
    found = found or {side for side, words in _WORDS_BY_SIDE.items() if any(one.startswith(word) for one in words)}
    return found.pop() if len(found) == 1 else ""


def _expand_abbreviation(match: re.Match[str]) -> str:
    """Return the word behind an abbreviation with a period, or the matched text if the word is known or there is no single one."""
    word = match[1].lower()
    plain = normalise_words(word)
    known = _ABBREVIATIONS.get(word) or _ABBREVIATIONS.get(plain)
    if known is None and (find_concepts(plain) or has_no_meaning(plain) or plain in PHRASES):
        return match[0]
    return f"{known or _complete_word(plain) or match[1]} "


@lru_cache(maxsize=1024)
def _complete_word(start: str) -> str:
    """Return the known word or compound that an abbreviation begins or contracts; empty if these have different meanings."""
    for length in range(len(start), _MIN_ABBREVIATION_CHARS - 1, -1):
        beginning, ending = start[:length], start[length:]
        words = [
            word
            for word in _WORDS_BY_FIRST_LETTER.get(start[0], ())
            if word.startswith(beginning) and word.endswith(ending)
        ]
        if words:
            shared = frozenset.intersection(*(_WORDS[word] for word in words))
            return min(words, key=len) if shared else ""
    for length in range(len(start) - 1, _MIN_PART_CHARS - 1, -1):
        rest = start[length:]
        if start[:length] in _WORDS and (last := _ABBREVIATIONS.get(rest) or _DIMENSION_LETTERS.get(rest)):
            return f"{start[:length]} {last}"
        if start[:length] in _WORDS and len(rest) >= _MIN_ABBREVIATION_CHARS and (last := _complete_word(rest)):
            return f"{start[:length]} {last}"
    return ""


def is_currency_code(word: str) -> bool:
    """Return whether a word is a currency code; codes with another meaning in headers, such as `map` and `top`, do not count."""
    return word in EXPONENTS and word not in _LISTS["no_currencies"]


def _parse_unit(word: str) -> str | None:
    return parse_length_unit(word) or parse_weight_unit(word)


def _find_unit(words: Sequence[str], bracketed: Sequence[str]) -> str | None:
    """Return the unit in a header, or None.

    Args:
        words: The words of the header. A Cyrillic word, or one of the last two words, can be a unit.
        bracketed: The words in brackets.
    """
    cyrillic = (_CYRILLIC_UNITS[word] for word in words if word in _CYRILLIC_UNITS)
    at_end = (unit for word in words[:0:-1][:2] if word not in _LISTS["no_units"] and (unit := _parse_unit(word)))
    found = next(cyrillic, None) or next(filter(None, map(_parse_unit, bracketed)), None) or next(at_end, None)
    return found or ("g" if len(words) > 1 and words[-1] == "g" else None)


def _list_lookup_texts(*texts: str) -> tuple[str, ...]:
    """Return the texts to look up as phrases: unchanged, without units, without currencies and without both.

    Each text is also returned with `#` in place of numbers.
    """
    lookup_texts: dict[str, None] = {}
    for text in texts:
        words = text.split()
        # The `g` of `G.W. (kg)` is no unit.
        named = words[:1] if len(text) > 1 and len(words[0]) == 1 else []
        rest = words[len(named) :]
        bare = [*named, *(word for word in rest if not (_parse_unit(word) or word in _LISTS["cents"]))] or words
        without = ([word for word in kept if not is_currency_code(word)] or kept for kept in (words, bare))
        for lookup_text in map(" ".join, (words, bare, *without)):
            lookup_texts |= dict.fromkeys((lookup_text, " ".join(_DIGITS.sub(" # ", lookup_text).split())))
    return tuple(filter(None, lookup_texts))


def _needs_names_before(before: str, last: str, *, is_path: bool) -> bool:
    """Return whether the last name of a path (`seat::height`, `image::url`) has another meaning than with the names before it."""
    scope = combine_concepts(split_into_words(normalise_words(before)))
    own = combine_concepts(split_into_words(normalise_words(last)))
    return not _SCOPES.isdisjoint(scope) or (is_path and _NONE < own <= _UNSPECIFIC_CONCEPTS)


@lru_cache(maxsize=8192)
def normalise_header(header: str) -> NormalisedHeader:
    """Normalise a header of a feed, which can contain line breaks, signs and brackets."""
    raw = _NAMESPACE.sub("", clean_line(header)).removesuffix(_XML_TEXT)
    metafield = _METAFIELD.search(raw)
    raw = _DIAMETER_SIGN.sub(" diameter ", _PER.sub(" per ", _METAFIELD.sub(" ", raw)))
    if "." in raw and len(raw) <= _MAX_HEADER_CHARS:
        raw = _ABBREVIATION.sub(_expand_abbreviation, raw)
    if order := _find_dimension_order(raw) or _find_order_of_words(raw):
        raw = f"{raw[: order[1].start()]} {_AXES_ORDER} {raw[order[1].end() :]}".strip()
    split = _NUMBER_SIGN.sub(" number", raw)
    # Split camelCase and snake_case; `UPC` and `SKUs` stay whole.
    split = split if " " in split.strip() else _CAMEL.sub(" ", _HUNGARIAN.sub("", split))
    unbracketed = _BRACKET.sub(" ", split)
    full = normalise_words(split)
    bare = normalise_words(unbracketed) or full
    bracketed = [word for part in _BRACKET.findall(raw) for word in (*normalise_words(part).split(), part.strip())]
    if any("gtin" in find_concepts(word) for word in bracketed):
        bare = full  # `Item code (EAN)` is no item code
    words = full.split()
    if words and raw.rstrip().endswith('"'):
        bracketed.append('"')
    number = _DIGITS.search(full)
    # The last name of a path (`core::supplierPartNumber`), or the text after a label (`Parameter: Brand`).
    before, _, last = split.rpartition(":")
    behind = [name for name in (normalise_words(last),) if normalise_words(before) and len(name) > 2]
    if behind and _needs_names_before(before, last, is_path="::" in raw):
        behind = []
    path = behind if "::" in raw else []
    parts = [normalise_words(part) for part in unbracketed.split("/")]
    slashed = [part for part in parts if len(part) > 2] if 1 < len(parts) <= _MAX_SLASHED else []
    signed = (code for sign, code in _CURRENCY_SIGNS.items() if sign in raw)
    return NormalisedHeader(
        tuple(dict.fromkeys((*_list_lookup_texts(*path), *_list_lookup_texts(full, bare)))),
        int(number[0]) if number else None,
        _find_unit(words, bracketed),
        next(filter(is_currency_code, words), None) or next(signed, None),
        metafield[1].lower() if metafield else None,
        tuple(dict.fromkeys((*path, full, bare, *slashed, *behind))),
    )


# Concepts of words, and rules from concepts to fields.


Concepts = frozenset[str]
_NONE: Final[Concepts] = frozenset()
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_LINKING_LETTERS = ("", "s", "n", "e", "es", "en", "er")
"""Linking letters between the parts of German, Dutch and Nordic compounds."""
_MIN_PART_CHARS = 3
_MAX_PART_ENDING_CHARS = 3
_MAX_PARTS = 4
_COMPOUND = range(6, 41)
_MIN_CORRECTED_CHARS = 5
_MAX_STEM_ENDING_CHARS = 8
_MAX_PHRASE_WORDS = 3
_ENDINGS = (
    ("as os es is a o e i".split(), ("", "o", "a", "e")),
    ("erna arna orna ene eren en et er ar na ne ta es em e s n r t".split(), ("", "e", "a")),
)
"""Endings of inflected words and their replacements: Romance, then Germanic."""
_MIN_BASE_CHARS = 4
_FIGURES = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_ABBREVIATIONS: Final[Mapping[str, str]] = load_toml("abbreviations")["words"]
_AXES_ORDER = "wxdxh"
"""Word that replaces an order of dimensions in a header, whatever its letters."""
_DIMENSION_LETTERS = {"w": "width", "b": "width", "d": "depth", "t": "depth", "h": "height", "l": "length"}
_WORDS_WITH_DIMENSIONS = frozenset("package dims size overall item gross".split())
_PARTS_WITH_DIMENSIONS = frozenset("seat arm package".split())
_NEUTRAL_CONCEPTS = frozenset("item overall lang furniture variant rug within".split())
"""Concepts that every rule permits, because they do not change the meaning of a header."""
_VENDOR_CONCEPTS = _NEUTRAL_CONCEPTS | {"brand", "maker", "hero", "collection"}
"""Concepts of words that can be, or precede, the name of a vendor."""
_UNKNOWN_PENALTY = 18
_MISSPELLING_PENALTY = 12
_TRANSLATION_PENALTY = 9
_MAX_UNKNOWN_WORDS = 3


@dataclass(frozen=True, slots=True)
class HeaderWord:
    """Word of a header with the concepts that it can mean; `is_exact` is False if the spelling was corrected."""

    text: str
    concepts: Concepts
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class HeaderInterpretation:
    """Result of interpreting a header word by word.

    Attributes:
        fields: The possible fields with their scores, best first.
        has_only_known_words: Whether all words are known; if `fields` is also empty, the catalogue has no field for the header.
        is_exact: Whether no spelling was corrected.
    """

    fields: tuple[tuple[str, int], ...] = ()
    has_only_known_words: bool = False
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class _Rule:
    """Rule that assigns fields to headers with certain concepts: one row of rules.csv.

    Attributes:
        field_scores: The fields that the rule assigns, with their scores.
        required_groups: Groups of concepts; the header must have a concept of each group.
        permitted_concepts: The concepts that the header may have.
        permits_unknown_words: Whether unknown words are permitted and ignored.
        permits_all_concepts: Whether all other concepts are permitted.
    """

    field_scores: tuple[tuple[str, int], ...]
    required_groups: tuple[Concepts, ...]
    permitted_concepts: Concepts
    permits_unknown_words: bool
    permits_all_concepts: bool

    def count_ignored_words(self, words: Sequence[HeaderWord], concepts: Concepts) -> int | None:
        """Return the number of unknown words that the rule ignores in a header, or None if the rule does not apply to it.

        Args:
            words: The words of the header.
            concepts: The concepts of all words.
        """
        if not all(group & concepts for group in self.required_groups):
            return None
        unknown = sum(not word.concepts for word in words)
        if unknown and not self.permits_unknown_words:
            return None
        fits = self.permits_all_concepts or all(
            not word.concepts or word.concepts & self.permitted_concepts for word in words
        )
        return unknown if fits else None


def _parse_rule(row: Mapping[str, str]) -> _Rule:
    pairs = (sense.rpartition(":") for sense in row["means"].split())
    needs = tuple(frozenset(group.split("|")) for group in row["needs"].split("+"))
    return _Rule(
        tuple((field, int(score)) for field, _, score in pairs),
        needs,
        _NEUTRAL_CONCEPTS.union(row["allows"].split(), *needs),
        bool(row["loose"]),
        row["allows"] == "*",
    )


_RULES = tuple(map(_parse_rule, load_csv_rows("rules")))


def _build_lexicon() -> tuple[dict[str, Concepts], dict[str, Concepts]]:
    """Return the concepts of words, and the concepts of stems (`word*` in the lexicon).

    Words are without accents; umlauts are also spelled as two letters.
    """
    whole, stems = dict[str, Concepts](), dict[str, Concepts]()
    for concept, text in load_toml("lexicon").items():
        for word in split_phrases(text):
            entries = stems if word.endswith("*") else whole
            for spelling in map(normalise_words, {word, word.translate(_UMLAUTS)}):
                entries[spelling] = entries.get(spelling, _NONE) | {concept}
    return whole, stems


_WORDS, _STEMS = _build_lexicon()
_MIN_STEM_CHARS = min(map(len, _STEMS))
_MAX_PART_CHARS = max(map(len, _WORDS))
_WORDS_BY_FIRST_LETTER: Final[Mapping[str, list[str]]] = {
    letter: [word for word in group if len(word) >= _MIN_CORRECTED_CHARS - 1 and " " not in word]
    for letter, group in groupby(sorted(_WORDS), key=itemgetter(0))
}


@lru_cache(maxsize=16384)
def find_concepts(word: str) -> Concepts:
    """Return the concepts of a word or phrase in its exact spelling; empty if unknown."""
    found = _WORDS.get(word, _NONE)
    for end in range(max(_MIN_STEM_CHARS, len(word) - _MAX_STEM_ENDING_CHARS), len(word) + 1):
        ending = word[end:]
        if " " not in ending and (len(ending) < _MIN_PART_CHARS or ending not in _WORDS):
            found |= _STEMS.get(word[:end], _NONE)
    return found


def has_no_meaning(word: str) -> bool:
    """Return whether a word has no meaning alone (`of`, `für`)."""
    return word in _LISTS["fillers"]


def _is_compound_part(word: str) -> bool:
    """Return whether a text can be part of a compound word: a known word, or a known stem with a short ending."""
    stemmed = any(word[: len(word) - end] in _STEMS for end in range(_MAX_PART_ENDING_CHARS + 1))
    return word not in _LISTS["no_parts"] and (word in _WORDS or stemmed)


def _split_compound(word: str) -> tuple[str, ...]:
    """Split a compound word into as few known words as possible; empty if it is not a compound or has too many parts."""
    # The search starts at the end: `after` maps each position where a part can end to the parts that follow. Most words have no such
    # position except the end, so the time is close to linear.
    after: dict[int, tuple[str, ...]] = {len(word): ()}
    whole: tuple[str, ...] = ()
    for start in range(len(word) - _MIN_PART_CHARS, -1, -1):
        best: tuple[str, ...] = ()
        for end, rest in after.items():
            fewer = _MIN_PART_CHARS <= end - start <= _MAX_PART_CHARS and (not best or len(rest) < len(best))
            if fewer and _is_compound_part(word[start:end]):
                best = (word[start:end], *rest)
        if best and start == 0:
            whole = best
        for link in _LINKING_LETTERS if best else ():
            end = start - len(link)
            if end > 0 and word.startswith(link, end) and len(best) < len(after.get(end, best + best)):
                after[end] = best
    return whole if 1 < len(whole) <= _MAX_PARTS else ()


def _find_misspelt_concepts(word: str) -> Concepts:
    """Return the concepts of a misspelt word with one missing, added or swapped letter; empty if the correction is ambiguous."""
    # A replaced letter is not corrected, because it often makes another word (`swatch`, `switch`).
    if not word.isalpha() or not _MIN_CORRECTED_CHARS <= len(word) < _COMPOUND.stop:
        return _NONE
    close = extract(word, _WORDS_BY_FIRST_LETTER.get(word[0], ()), scorer=OSA.distance, score_cutoff=1, limit=None)
    found = {
        _WORDS[candidate]
        for candidate, _, _ in close
        if len(candidate) != len(word) or sorted(candidate) == sorted(word)
    }
    return found.pop() if len(found) == 1 else _NONE


def _find_inflected_concepts(word: str) -> Concepts:
    """Return the concepts of a known word with another ending (`previsto` for `prevista`); empty if there is none."""
    for endings, others in _ENDINGS:
        for ending in endings:
            stem = word.removesuffix(ending)
            if stem != word and len(stem) >= _MIN_BASE_CHARS:
                for other in others:
                    if other != ending and (found := _WORDS.get(stem + other)):
                        return found
    return _NONE


@lru_cache(maxsize=16384)
def split_into_words(text: str) -> tuple[HeaderWord, ...]:
    """Split a header in plain form (`normalise_words`) into words with their concepts.

    Known phrases count as one word, compounds are split, and words without meaning (`of`) are omitted.
    """
    given = text.split()
    out: list[HeaderWord] = []
    at = 0
    while at < len(given):
        for size in range(min(_MAX_PHRASE_WORDS, len(given) - at), 1, -1):
            phrase = " ".join(given[at : at + size])
            if found := find_concepts(phrase):
                out.append(HeaderWord(phrase, found))
                at += size
                break
        else:
            out.extend(_interpret_word(given[at]))
            at += 1
    return tuple(out)


def _interpret_word(word: str) -> Iterator[HeaderWord]:
    """Yield a word with its concepts, or each part of a compound word; nothing for a number or a word without meaning."""
    if found := find_concepts(word):
        yield HeaderWord(word, found)
    elif has_no_meaning(word) or word.rstrip("%").isdecimal():
        return
    elif word.isalpha() and (found := _find_inflected_concepts(word)):
        yield HeaderWord(word, found)
    elif len(word) in _COMPOUND and (parts := _split_compound(word)):
        yield from (HeaderWord(part, find_concepts(part)) for part in parts)
    else:
        respelt = _find_misspelt_concepts(word)
        yield HeaderWord(word, respelt, is_exact=not respelt)


def combine_concepts(words: Sequence[HeaderWord]) -> Concepts:
    """Return the concepts of all words combined."""
    return _NONE.union(*(word.concepts for word in words))


def _is_unit_or_currency(word: str) -> bool:
    """Return whether a word is a unit or a currency."""
    return (
        word in _LISTS["local_units"] or is_currency_code(word) or (bool(_parse_unit(word)) and not find_concepts(word))
    )


def split_words_without_units(text: str) -> list[HeaderWord]:
    """Split a text of `NormalisedHeader.plain_texts` into words, and omit units and currencies.

    Each HeaderWord has the concepts of its word, such as `width` and `package`.
    """
    apart = " ".join(word if find_concepts(word) else _FIGURES.sub(" ", word) for word in text.split())
    words = [word for word in split_into_words(apart) if not _is_unit_or_currency(word.text)]
    last = apart.rpartition(" ")[2]
    if (side := _DIMENSION_LETTERS.get(last)) and _WORDS_WITH_DIMENSIONS & combine_concepts(words):
        words = [*(word for word in words if word.text != last), HeaderWord(last, frozenset((side,)))]
    if (
        len(words) == 2
        and (side := _DIMENSION_LETTERS.get(words[0].text))
        and words[1].concepts & _PARTS_WITH_DIMENSIONS
    ):
        words[0] = HeaderWord(words[0].text, frozenset((side,)))
    return words


@lru_cache(maxsize=16384)
def interpret_header(text: str) -> HeaderInterpretation:
    """Interpret a header in plain form (`normalise_words`) word by word, by the first rule that applies."""
    words = split_words_without_units(text)
    found = combine_concepts(words)
    if not found or sum(not word.concepts for word in words) > _MAX_UNKNOWN_WORDS:
        return HeaderInterpretation()
    spelt = all(word.is_exact for word in words if word.concepts)
    # `name` takes precedence over `name_en`.
    translated = len(words) > 1 and any(word.concepts == {"lang"} for word in words)
    costs = (0 if spelt else _MISSPELLING_PENALTY) + (_TRANSLATION_PENALTY if translated else 0)
    for rule in _RULES:
        unknown = rule.count_ignored_words(words, found)
        if unknown is not None:
            loss = costs + unknown * _UNKNOWN_PENALTY
            fields = tuple((field, score - loss) for field, score in rule.field_scores if score > loss)
            return HeaderInterpretation(
                fields, not unknown or (rule.permits_all_concepts and not rule.field_scores), spelt
            )
    return HeaderInterpretation()


MEANINGFUL_PREFIXES = _LISTS["not_dropped"]
"""Words that change the meaning of the words after them."""
_SAFE = frozenset("sku gtin mpn cost msrp map price compare_at sale_price".split())
_PREFIXED = frozenset(
    "features media tags materials category_path cartons incoming option_name option_value colour".split()
)
_NOT_IN_METAFIELDS = frozenset("colour title materials media tags features finish".split())
_ZERO_BASED = re.compile(r"\.\d+(?:\.|$)|\[\d+\]")
_FURTHER_VARIANT = re.compile(r"^(?:product\.)?variants?[.\[](?!0\b)\d+")
_GRAMS = re.compile(r"\bgrams\b", re.I)
_UNIT_OF_TIME_BY_WORD = {
    normalise_words(word): unit
    for word, unit in invert_table(load_toml("units")["time"]).items()
    if len(word) > 1 and word != "std"
}
"""Units of time by words of headers; `Std.` is an hour in German cells, but `standard` in headers."""
_XML_TEXT = ".#text"
"""Suffix of the header for the text of XML elements that also have attributes."""
_MAX_FIELD_NUMBER = 20
_MAX_HEADER_CHARS = 300
_MAX_COUNTED_CHARS = 120
"""Maximum number of characters of a cell that `count_known_headers` counts."""
_MIN_PHRASE_SCORE = 75
"""Minimum score at which a header that is a listed phrase is not interpreted in other ways."""
_PHRASE_BONUS = 25
"""Amount added to the score of a listed phrase when interpretations of a header are compared."""
_VENDOR_PENALTY = 15
_UNIT_BONUS = 45
PROMOTED_SCORE = 150
"""Score of a weak meaning that is used because the table has no better column for a required field."""
FieldScores = Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class HeaderMeaning:
    """Possible meaning of a header: a field with settings, and a score that is 100 for a clear meaning.

    Attributes:
        is_numbered: Whether the header is one of a numbered series (`Image 1`, `Image 2`).
        is_guess: Whether a word was unknown or its spelling was corrected.
        is_phrase: Whether the complete header is listed in phrases.toml.
    """

    field: str
    score: int
    settings: tuple[tuple[str, str], ...] = ()
    is_numbered: bool = False
    is_guess: bool = False
    is_phrase: bool = False


def _load_phrases() -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for row in load_toml("phrases")["phrases"]:
        for phrase in split_phrases(row["headers"]):
            found.setdefault(phrase, []).append((row["field"], row["score"]))
    return found


PHRASES: Final[Mapping[str, FieldScores]] = _load_phrases()
"""Fields with scores by phrase in plain form, with `#` for a number."""


def find_header_settings(field: str, header: str) -> tuple[tuple[str, str], ...]:
    """Return the settings of a field that a header contains, such as unit, order of dimensions and currency."""
    found, raw = normalise_header(header), clean_line(header)
    settings: dict[str, str] = {}
    head, _, tail = field.rpartition(".")
    if tail == "weight":
        if found.unit in POUNDS_BY_UNIT:
            settings["unit"] = str(found.unit)
        if _GRAMS.search(raw):
            settings["unit"] = "g"
    elif found.unit in INCHES_BY_UNIT and (
        field in ("dimensions", "rug.pile_height")
        or head == "dimensions"
        or (head.startswith("cartons") and tail != "count")
    ):
        settings["unit"] = str(found.unit)
    if tail == "dimensions" and (order := _find_dimension_order(raw) or _find_order_of_words(raw)):
        settings["order"] = order[0]
    if field in MONEY and found.currency:
        settings["currency"] = found.currency
    if field in MONEY and not _LISTS["cents"].isdisjoint(found.plain_texts[0].split()):
        settings["unit"] = "cents"
    if field == "lead_time_days" and (unit := _find_unit_of_time(found.plain_texts[0])):
        settings["unit"] = unit
    return tuple(settings.items())


def _find_unit_of_time(plain_text: str) -> str | None:
    """Return the unit of time that the words of a header name; None if they name no unit, several, or months."""
    units = {unit for word in plain_text.split() if (unit := _UNIT_OF_TIME_BY_WORD.get(word))}
    return units.pop() if len(units) == 1 and "months" not in units else None


def _build_meaning(
    field: str, score: int, matched_text: str, header: str, *, is_guess: bool, is_phrase: bool = False
) -> HeaderMeaning:
    """Build a meaning of a header, with the settings and the number in the header.

    Args:
        field: The field, possibly with settings (`weight@unit=g`).
        score: The score.
        matched_text: The text of the header that led to the field, with `#` for a number.
        header: The header.
        is_guess: Whether a word was ignored or corrected.
        is_phrase: Whether the complete header is a listed phrase.
    """
    name, declared_settings = parse_declared_field(field)
    number = normalise_header(header).number
    is_numbered = "#" in matched_text.split()
    if is_numbered and number is not None:
        name = "category_path.0" if name == "category_path" else name
        index = number if _ZERO_BASED.search(clean_line(header)) else number - 1
        name = name.replace(".0", f".{index}", 1) if 0 <= index < _MAX_FIELD_NUMBER else name
    settings = (*declared_settings.items(), *find_header_settings(name, header))
    if name == "dimensions" and dict(settings).keys() & {"unit", "order"}:
        score += _UNIT_BONUS
    return HeaderMeaning(
        name, score, settings, is_numbered and name.partition(".")[0] in _PREFIXED, is_guess, is_phrase
    )


def _find_phrase(text: str) -> tuple[str, FieldScores] | None:
    """Look up a text in phrases.toml; if the text is a JSON path, also without its first and last names.

    The names that can be omitted are listed in `path_words` and `path_tails` of words.toml.

    Return the phrase and its fields with scores, or None.
    """
    parts = text.split()
    while text not in PHRASES and len(parts) > 1 and (parts[0] in _LISTS["path_words"] or parts[0] == "#"):
        parts = parts[1:]
        text = " ".join(parts)
    if text not in PHRASES and len(parts) > 1 and parts[-1] in _LISTS["path_tails"]:
        text = " ".join(parts[:-1])
    return (text, PHRASES[text]) if text in PHRASES else None


def _find_phrase_after_vendor(text: str) -> tuple[str, FieldScores] | None:
    """Look up a text without a vendor's name before it (`Acme UPC Code`); only phrases for keys and prices are accepted.

    Return the phrase and its fields with scores, or None.
    """
    parts = text.split()
    for start in range(1, min(3, len(parts))):
        word = parts[start - 1]
        if word in MEANINGFUL_PREFIXES or word == "#" or find_concepts(word) - _VENDOR_CONCEPTS:
            return None
        rest = " ".join(parts[start:])
        safe = [hit for hit in PHRASES.get(rest, ()) if hit[0] in _SAFE]
        if safe and len(rest) > 2 and rest not in _LISTS["too_common"]:
            return rest, safe
    return None


def _find_phrase_meanings(
    header: str, look_up: Callable[[str], tuple[str, FieldScores] | None], penalty: int = 0
) -> tuple[HeaderMeaning, ...]:
    """Return the meanings of a header that contains a listed phrase, best first; empty for other headers.

    Args:
        header: The header.
        look_up: Looks up a text, and returns the phrase and its fields with scores, or None.
        penalty: The amount by which scores are reduced.
    """
    found = normalise_header(header)
    match = next(filter(None, map(look_up, found.lookup_texts)), None)
    if match is None:
        return ()
    phrase, options = match
    # A weight is no price (`Netto (kg)`), and the other way round.
    fields = {field for field, _ in options}
    if not MONEY.isdisjoint(fields):
        is_weight = found.unit in POUNDS_BY_UNIT
        options = [option for option in options if (option[0] not in MONEY if is_weight else option[0] != "weight")]
    is_guess = penalty > 0
    meanings = [
        _build_meaning(field, score - penalty, phrase, header, is_guess=is_guess, is_phrase=not penalty)
        for field, score in options
    ]
    if found.metafield_owner == "product":
        meanings = [
            meaning
            for meaning in meanings
            if not meaning.field.startswith("axes") and meaning.field not in _NOT_IN_METAFIELDS
        ]
    return tuple(sorted(meanings, key=lambda meaning: -meaning.score))


def _interpret_words(header: str, plain_text: str) -> tuple[HeaderMeaning, ...]:
    """Interpret one of a header's `NormalisedHeader.plain_texts` word by word; return the meanings, best first."""
    reading = interpret_header(plain_text)
    if not reading.fields:
        return (HeaderMeaning(IGNORE, 90),) if reading.has_only_known_words and reading.is_exact else ()
    found = normalise_header(header)
    matched_text = plain_text if found.number is None else f"{plain_text} #"
    is_guess = not (reading.is_exact and reading.has_only_known_words)
    return tuple(
        _build_meaning(field, score, matched_text, header, is_guess=is_guess)
        for field, score in reading.fields
        if not (found.unit and field.endswith("_unit"))
    )


@lru_cache(maxsize=8192)
def find_header_meanings(header: str) -> tuple[HeaderMeaning, ...]:
    """Return the possible meanings of a header, best first; empty if the header is unknown.

    The header is interpreted as a phrase, as a phrase after a vendor's name, and word by word; the interpretation with the best score
    is used.
    """
    if len(header) > _MAX_HEADER_CHARS:
        return ()
    if _FURTHER_VARIANT.match(clean_line(header)):
        return (HeaderMeaning(IGNORE, 100),)
    from_phrase = _find_phrase_meanings(header, _find_phrase)
    if from_phrase and from_phrase[0].score >= _MIN_PHRASE_SCORE:
        return from_phrase
    after_vendor = _find_phrase_meanings(header, _find_phrase_after_vendor, _VENDOR_PENALTY)
    word_by_word = (_interpret_words(header, text) for text in normalise_header(header).plain_texts)
    found = list(filter(None, (from_phrase, after_vendor, *word_by_word)))
    best = max(found, key=lambda senses: senses[0].score + _PHRASE_BONUS * senses[0].is_phrase, default=())
    # `Dimensioni / Dimensions W`: the part after the slash says more than the part before it.
    return next((senses for senses in found if best and senses[0].field.startswith(f"{best[0].field}.")), best)


def count_known_headers(cells: Sequence[str]) -> int:
    """Return the number of cells in a row that are known headers. The row with the highest number is the header row."""
    return sum(
        1
        for cell in cells
        if cell and isinstance(cell, str) and len(cell) <= _MAX_COUNTED_CHARS and find_header_meanings(cell)
    )


# Classification of headers without a rule by a linear model.


OUTSIDE_CATALOGUE = "outside"
"""Class of headers for which the catalogue has no field, in the classification of headers."""
_GRAM_SIZES = (3, 4, 5)
_MAX_CLASSIFIED_CHARS = 80
_MIN_PROBABILITY = 0.75
_MIN_OTHER_PROBABILITY = 0.5
_SCORE = 52
_CONFIRMED_BONUS = 10
_FIELD_NUMBER = re.compile(r"\.\d+")
_CLASSES = {"media.hero": "media", "category_path.0": "category_path", IGNORE: OUTSIDE_CATALOGUE}
_NEVER_CLASSIFIED = MONEY | {*KEYS, OUTSIDE_CATALOGUE, "axes", "components", "cartons"}
"""Fields that classification never assigns, because keys and prices must be stated explicitly."""


def extract_header_features(text: str) -> tuple[str, ...]:
    """Return the distinct features of a header in plain form, such as groups of letters, for the classification."""
    return tuple(dict.fromkeys(_generate_features(text[:_MAX_CLASSIFIED_CHARS])))


def _generate_features(text: str) -> Iterator[str]:
    yield "*"
    words = text.split()
    for word in words:
        edged = f"^{word}$"
        yield from (edged[at : at + size] for size in _GRAM_SIZES for at in range(len(edged) - size + 1))
        yield f"w={word}"
    for part in split_words_without_units(text):
        yield from (f"c={concept}" for concept in sorted(part.concepts) or ("",))
    if words:
        yield f"last={words[-1]}"


@cache
def _load_classification_model() -> tuple[tuple[str, ...], Mapping[str, Mapping[str, int]], float]:
    """Load the classification model: the classes, the weights of each feature by index of the class, and their scale."""
    data = json.loads(read_data_file("weights.json"))
    return tuple(data["classes"]), data["weights"], data["scale"]


@lru_cache(maxsize=8192)
def classify_header(header: str) -> tuple[str, float]:
    """Classify a header: return the most probable class (a field, or OUTSIDE_CATALOGUE) and its probability."""
    classes, weights, scale = _load_classification_model()
    scores = [0.0] * len(classes)
    for feature in extract_header_features(normalise_header(header).plain_texts[0]):
        for number, weight in weights.get(feature, {}).items():
            scores[int(number)] += weight
    best = max(range(len(classes)), key=scores.__getitem__)
    total = sum(math.exp((score - scores[best]) * scale) for score in scores)
    return classes[best], 1 / total


def find_field_class(field: str) -> str:
    """Return the class of a field in the classification; fields that differ only in a number have the same class."""
    name = _FIELD_NUMBER.sub(".0", field)
    return _CLASSES.get(name, name)


def compute_similarity(header: str, field: str) -> float:
    """Return the similarity of a header to headers of a field, from -1 (surely another field) to 1 (surely this field)."""
    label, probability = classify_header(header)
    return probability if label == find_field_class(field) else -probability


def correct_by_classification(header: str, meanings: tuple[HeaderMeaning, ...]) -> tuple[HeaderMeaning, ...]:
    """Correct uncertain meanings of a header by classification, and return the result.

    Meanings that are no guess, and those of headers with a currency (`FOB Shenzhen USD`), stay unchanged. Otherwise the classification confirms or removes them, or adds one if there is none.

    Args:
        header: The header.
        meanings: The possible meanings of the header, best first.
    """
    states_currency = meanings and "currency" in dict(meanings[0].settings)
    if meanings and (not meanings[0].is_guess or states_currency):
        return meanings
    label, probability = classify_header(header)
    if not meanings:
        is_certain = label not in _NEVER_CLASSIFIED and probability >= _MIN_PROBABILITY
        guess = HeaderMeaning(
            label, _SCORE + round(10 * probability), find_header_settings(label, header), is_guess=True
        )
        return (guess,) if is_certain else ()
    if label == find_field_class(meanings[0].field):
        return tuple(replace(meaning, score=meaning.score + _CONFIRMED_BONUS) for meaning in meanings)
    return () if probability >= _MIN_OTHER_PROBABILITY else meanings
