"""Validation of names that users give themselves and their organisations, which pages and mail show to others."""

import re
import unicodedata
from itertools import groupby

from domain.kernel.errors import InvalidRequest

MAX_NAME_CHARS = 100
_MAX_COMBINING_MARKS = 4
"""Maximum number of consecutive combining marks; Tibetan and vocalised Hebrew need no more."""
_LINK = re.compile(r"[/\\@]|\bwww\.|\b[a-z][a-z0-9+.-]*:(?=\S)", re.IGNORECASE)
_HOST = re.compile(r"[^\s.][.\u3002][^\W\d_][^\s.,]|\b\d+\.\d+\.\d+\.\d+\b")
_LIKE_SLASHES = re.compile(
    "[\u1735\u2044\u20e5\u20eb\u2215\u2216\u2236\u244a\u2571-\u2573\u27cb\u27cd\u29f5-\u29f9\u2afb\u2afd\u2cc6\u3033\u31d3\u4e3f\ua789]"
)
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U0001d159]")
"""Characters that are letters, marks or symbols according to Unicode but display nothing."""
_PRODUCT = re.compile(r"\b[A-Za-z]{1,20}/[0-9.]{1,16}\b|\A[A-Za-z]{1,20}\Z")


def validate_name(text: str) -> str:
    """Validate a name; return the name with each run of white space replaced by one space.

    Host names are allowed, because companies use them as names.

    Raises:
        InvalidRequest: The name is empty, longer than MAX_NAME_CHARS, or has no letter or digit. Or it contains control,
            bidirectional or zero-width characters, an email address, or something that looks like a URL.
    """
    name = " ".join(text[: MAX_NAME_CHARS * 4].split())
    if not name:
        raise InvalidRequest.for_field("name", "required", "Enter a name.")
    if len(name) > MAX_NAME_CHARS:
        raise InvalidRequest.for_field("name", "too_long", f"Use at most {MAX_NAME_CHARS} characters.")
    if not _is_plain(name):
        raise InvalidRequest.for_field(
            "name", "invalid_value", "Use letters, digits and punctuation, without slashes, links or addresses."
        )
    return name


def displayable_name(text: str, default: str = "") -> str:
    """Return the validated name; return `default` if it is invalid or mail programs would turn it into a link."""
    try:
        name = validate_name(text)
    except InvalidRequest:
        return default
    return default if _HOST.search(unicodedata.normalize("NFKC", name)) else name


def displayable_address(text: str, default: str = "") -> str:
    """Return the email address, or `default` if its local part or domain is invalid as a name (`validate_name`)."""
    local, _, domain = text.partition("@")
    try:
        return text if f"{validate_name(local)}@{validate_name(domain)}" == text and " " not in text else default
    except InvalidRequest:
        return default


def extract_product_names(text: str) -> str:
    """Return the product names in a User-Agent header (RFC 9110 §10.1.5), without comments and other text."""
    return " ".join(_PRODUCT.findall(text[:500]))


def _is_plain(name: str) -> bool:
    # Compatibility forms are checked as the characters that they resemble; names are short, so normalising is cheap.
    folded = unicodedata.normalize("NFKC", name)
    runs = [(kind, len(list(run))) for kind, run in groupby(unicodedata.category(one)[0] for one in folded)]
    return (
        name.isprintable()
        and folded.isprintable()
        and not any(refused.search(text) for refused, text in ((_LINK, folded), (_LIKE_SLASHES, name), (_BLANK, name)))
        and any(kind in "LN" for kind, _ in runs)
        and all(length <= _MAX_COMBINING_MARKS for kind, length in runs if kind == "M")
    )
