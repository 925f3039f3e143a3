"""Names of vendors: keys that identify a brand whatever its spelling, keys for searching, and slugs."""

from collections.abc import Iterable, Sequence

from rapidfuzz.distance import OSA

from domain.brand.domains import list_search_domains
from domain.brand.model import ProfileStatus, VendorProfile
from domain.catalogue.search_terms import MAX_QUERY_WORDS, normalise_brand, split_into_words
from domain.matching.words import COMPANY_WORDS, normalise_characters

MAX_SLUG_CHARS = 60
MAX_SIMILAR_WORDS = 50
"""Maximum number of similar words that are searched for instead of one word of a query."""
_MAX_WORD_CHARS = 24
"""Maximum number of characters of a word in search keys; the rest is ignored."""
_MIN_TOLERANT_CHARS = 4
"""Minimum number of characters of a word that is found with a wrong letter."""
LEGAL_FORMS = COMPANY_WORDS & {"inc", "co", "ltd", "llc", "corp", "company", "gmbh", "ag", "sa", "spa", "srl", "ab"}
"""Words of a company's legal form, which do not distinguish brands; others, such as `home`, do."""
_BRAND, _DOMAIN, _NAME, _STATUS, _WORD = "b:", "d:", "n:", "s:", "w:"


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
    """Return the search key of a brand, of which each mode has one proven profile."""
    return _BRAND + compute_brand_key(brand)


def name_term(name: str) -> str:
    """Return the search key of the name of a proven profile, which several profiles may have."""
    return _NAME + compute_brand_key(name)


def domain_term(domain: str) -> str:
    """Return the search key of a domain."""
    return _DOMAIN + domain


def status_term(status: ProfileStatus, *, verified: bool) -> str:
    """Return the search key of a status, with or without verification."""
    return f"{_STATUS}{status}{':verified' if verified else ''}"


def list_status_terms(status: ProfileStatus | None, verified: bool | None) -> list[str]:
    """Return the search keys of all statuses, with or without verification, that the arguments permit; None permits any."""
    return [
        status_term(permitted, verified=is_verified)
        for permitted in ProfileStatus
        for is_verified in (False, True)
        if status in (None, permitted) and verified in (None, is_verified)
    ]


def word_term(word: str) -> str:
    """Return the search key of a word."""
    return _WORD + word


def list_search_words(name: str) -> set[str]:
    """Return the words under which a name is found: its words, and its words joined, with and without generic ones."""
    words = _split(name)
    joined = {"".join(words), "".join(list_words(name))}
    return {word[:_MAX_WORD_CHARS] for word in {*words, *joined} if word}


def list_profile_words(name: str, brands: Iterable[str]) -> set[str]:
    """Return the words under which a profile is found."""
    return {word for text in (name, *brands) for word in list_search_words(text)}


def list_profile_terms(profile: VendorProfile) -> list[str]:
    """Return the search keys of a profile: words, the domain with its parent domains, the status, and if proven, brands and name.

    The name of a profile that its vendor stated itself is a brand: it was approved because it is the domain's name.
    """
    name, brands, domain = profile.name, profile.brands, profile.website_domain
    terms = {status_term(profile.status, verified=profile.verified)}
    terms.update(map(word_term, list_profile_words(name, brands)))
    terms.update(map(domain_term, list_search_domains(domain) if domain else ()))
    if profile.is_proven:
        terms.update(map(brand_term, brands), [name_term(name) if profile.is_gathered else brand_term(name)])
    return sorted(terms - {_BRAND, _NAME})


def list_deletions(word: str) -> list[str]:
    """Return the word, and the word without each one of its letters.

    Two words with at most one wrong, missing, superfluous or exchanged letter have one of these texts in common.
    """
    variants = {word}
    if len(word) >= _MIN_TOLERANT_CHARS:
        variants.update(word[:place] + word[place + 1 :] for place in range(len(word)))
    return sorted(variants)


def split_query(q: str) -> tuple[Sequence[str], str]:
    """Return the words of a query, without generic ones such as `Ltd` beside others, and the words joined.

    A profile matches if it has each word, or the joined words.
    """
    words = list(dict.fromkeys(word[:_MAX_WORD_CHARS] for word in list_words(q)))[:MAX_QUERY_WORDS]
    return words, "".join(words)[:_MAX_WORD_CHARS]


def select_similar(word: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that equal the word or have one wrong, missing, superfluous or exchanged letter, nearest first.

    Words with fewer than four letters must be equal. At most MAX_SIMILAR_WORDS are returned.
    """
    limit = 1 if len(word) >= _MIN_TOLERANT_CHARS else 0
    found = [(OSA.distance(word, other, score_cutoff=limit), other) for other in candidates]
    return [other for distance, other in sorted(found) if distance <= limit][:MAX_SIMILAR_WORDS]


def build_slug(name: str) -> str:
    """Return the name as a part of a URL, such as `fjord-furniture`."""
    ascii_words = (word for word in _split(name) if word.isascii())
    return "-".join(ascii_words)[:MAX_SLUG_CHARS].strip("-") or "brand"
