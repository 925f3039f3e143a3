"""Names of vendors: keys that identify a brand whatever its spelling, keys for searching, and slugs."""

from collections.abc import Iterable, Sequence

from domain.brand.domains import list_search_domains
from domain.catalogue.search_terms import MAX_QUERY_WORDS, normalise_brand, split_into_words
from domain.matching.words import COMPANY_WORDS, normalise_characters

MAX_SLUG_CHARS = 60
_MAX_WORD_CHARS = 24
"""Maximum number of characters of a word in search keys; the rest is ignored."""
_MIN_TOLERANT_CHARS = 4
"""Minimum number of characters of a word that is found with a wrong letter."""
LEGAL_FORMS = COMPANY_WORDS & {"inc", "co", "ltd", "llc", "corp", "company", "gmbh", "ag", "sa", "spa", "srl", "ab"}
"""Words of a company's legal form, which do not distinguish brands; others, such as `home`, do."""
_BRAND, _DOMAIN, _WORD = "b:", "d:", "w:"


def list_words(name: str) -> list[str]:
    """Return the words of a name in lower case and without accents; words such as `Ltd` are omitted, unless all are."""
    words = _split(name)
    return [word for word in words if word not in COMPANY_WORDS] or words


def _split(name: str) -> list[str]:
    return split_into_words(normalise_characters(name))


def compute_brand_key(brand: str) -> str:
    """Return the key that is equal for all spellings of a brand, such as `West Elm Ltd` and `westelm`; it may be empty."""
    words = _split(brand)
    return normalise_brand(" ".join([word for word in words if word not in LEGAL_FORMS] or words))


def brand_term(brand: str) -> str:
    """Return the search key of a brand, of which each mode has one profile."""
    return _BRAND + compute_brand_key(brand)


def domain_term(domain: str) -> str:
    """Return the search key of a domain."""
    return _DOMAIN + domain


def list_word_terms(word: str) -> list[str]:
    """Return the search keys of a word: the word, and the word without each one of its letters.

    Two words share a key if they are equal after at most one letter was removed from each: a letter is missing,
    superfluous, wrong, or exchanged with its neighbour.
    """
    short = word[:_MAX_WORD_CHARS]
    variants = {short}
    if len(short) >= _MIN_TOLERANT_CHARS:
        variants.update(short[:place] + short[place + 1 :] for place in range(len(short)))
    return sorted(_WORD + variant for variant in variants)


def list_profile_terms(name: str, brands: Iterable[str], domain: str | None) -> list[str]:
    """Return the search keys of a profile: brands, words of name and brands, and the domain with its parent domains."""
    terms = {brand_term(brand) for brand in brands}
    for text in (name, *brands):
        words = _split(text)
        for word in {*words, "".join(words), "".join(list_words(text))}:
            terms.update(list_word_terms(word))
    terms.update(map(domain_term, list_search_domains(domain) if domain else ()))
    return sorted(terms)


def list_query_terms(q: str) -> tuple[Sequence[Sequence[str]], Sequence[str]]:
    """Return the search keys of each word of a query, the longest word first, and those of the joined words.

    Words such as `Ltd`, which many names contain, are ignored beside others.
    A profile matches if it has a key of each word, or one of the joined words.
    """
    words = list(dict.fromkeys(list_words(q)))[:MAX_QUERY_WORDS]
    ordered = sorted(words, key=len, reverse=True)
    return [list_word_terms(word) for word in ordered], list_word_terms("".join(words)) if words else []


def build_slug(name: str) -> str:
    """Return the name as a part of a URL, such as `fjord-furniture`."""
    ascii_words = (word for word in _split(name) if word.isascii())
    return "-".join(ascii_words)[:MAX_SLUG_CHARS].strip("-") or "brand"
