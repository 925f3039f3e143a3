"""Languages of the console: message catalogues, and the locales in which numbers and dates are formatted."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final

from babel import Locale, negotiate_locale
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from werkzeug.datastructures import LanguageAccept
from werkzeug.http import parse_accept_header

CATALOGUE_FOLDER = Path(__file__).parent / "locale"
"""Folder of the message catalogues."""
LANGUAGES: Final[Mapping[str, Locale]] = {"en": Locale("en", "US"), "de": Locale("de", "DE")}
"""The locales of the available languages. English texts are in templates and code, those of other languages in catalogues."""
_LANGUAGE: ContextVar[str] = ContextVar("language", default="en")


def choose_language(accept_language: str, preferred: str | None = None) -> str:
    """Return the language of a page: the person's preferred language, or else the best match for a header.

    Args:
        accept_language: The value of the Accept-Language header.
        preferred: The language in the person's profile.
    """
    if preferred and preferred in LANGUAGES:
        return preferred
    languages = [
        language for language, quality in parse_accept_header(accept_language[:200], LanguageAccept) if quality
    ]
    return negotiate_locale(languages, LANGUAGES, sep="-") or "en"


def use_language(language: str) -> None:
    """Set the language of all texts that the current asyncio task formats from now on."""
    _LANGUAGE.set(language)


@contextmanager
def using_language(language: str) -> Iterator[None]:
    """Use a language for all texts that are formatted while the context is open; English for an unknown language."""
    token = _LANGUAGE.set(language if language in LANGUAGES else "en")
    try:
        yield
    finally:
        _LANGUAGE.reset(token)


def get_current_locale() -> Locale:
    """Return the locale of the current language."""
    return LANGUAGES[_LANGUAGE.get()]


@cache
def _load_catalogue(language: str) -> NullTranslations:
    """Load the message catalogue of a language; for English, an empty one, which returns messages unchanged."""
    path = CATALOGUE_FOLDER / language / "LC_MESSAGES" / "messages.po"
    if language == "en":
        return NullTranslations()
    compiled = BytesIO()
    with path.open("rb") as file:
        write_mo(compiled, read_po(file, locale=language))
    compiled.seek(0)
    return GNUTranslations(compiled)


def gettext(message: str, /, **values: Any) -> str:
    """Return the message in the current language, with `%(name)s` replaced by the values."""
    text = _load_catalogue(_LANGUAGE.get()).gettext(message)
    return text % values if values else text


def ngettext(singular: str, plural: str, num: int, /, **values: Any) -> str:
    """Return the message for a number `num` in the current language, with `%(name)s` replaced by the values."""
    text = _load_catalogue(_LANGUAGE.get()).ngettext(singular, plural, num)
    return text % values if values else text


def N_(message: str) -> str:  # noqa: N802  # the name that extraction knows
    """Return the message unchanged. The call marks the message for extraction; `gettext` translates it later."""
    return message


def extract_labels(
    file: IO[bytes], keywords: Sequence[str], comment_tags: Sequence[str], options: Mapping[str, Any]
) -> Iterator[tuple[int, str, str, list[str]]]:
    """Yield the labels of a TOML file as Babel's extractors do: line, function, message and comments of each."""
    for section, labels in tomllib.loads(file.read().decode()).items():
        for label in labels.values():
            yield 0, "gettext", label, [section]
