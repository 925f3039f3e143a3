"""Languages of the console: the message catalogues, and the locale that texts, numbers and dates are written in."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final

from babel import Locale
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from werkzeug.datastructures import LanguageAccept
from werkzeug.http import parse_accept_header

FOLDER = Path(__file__).parent / "locale"
LANGUAGES: Final[Mapping[str, Locale]] = {"en": Locale("en", "US")}
"""The languages with a complete catalogue, and the locale of each. English texts stand in templates and code themselves."""
_LANGUAGE: ContextVar[str] = ContextVar("language", default="en")


def choose_language(accepted: str) -> str:
    """Return the language of a page by the browser's Accept-Language header."""
    return parse_accept_header(accepted[:200], LanguageAccept).best_match(LANGUAGES, "en") or "en"


def use_language(language: str) -> None:
    """Write everything that follows in this task in the language."""
    _LANGUAGE.set(language)


def current_locale() -> Locale:
    """Return the locale of the current language."""
    return LANGUAGES[_LANGUAGE.get()]


@cache
def _messages(language: str) -> NullTranslations:
    """Return the compiled catalogue of a language; English has none."""
    path = FOLDER / language / "LC_MESSAGES" / "messages.po"
    if language == "en":
        return NullTranslations()
    compiled = BytesIO()
    with path.open("rb") as file:
        write_mo(compiled, read_po(file, locale=language))
    compiled.seek(0)
    return GNUTranslations(compiled)


def gettext(message: str, /, **values: Any) -> str:
    """Return the message in the current language, with `%(name)s` replaced by the values."""
    text = _messages(_LANGUAGE.get()).gettext(message)
    return text % values if values else text


def ngettext(singular: str, plural: str, num: int, /, **values: Any) -> str:
    """Return the form of the message for `num` in the current language."""
    text = _messages(_LANGUAGE.get()).ngettext(singular, plural, num)
    return text % values if values else text


def N_(message: str) -> str:  # noqa: N802  # the name that extraction knows
    """Mark a message that is defined before the language is known; it is translated where it is shown."""
    return message


def extract_labels(
    file: IO[bytes], keywords: Sequence[str], comment_tags: Sequence[str], options: Mapping[str, Any]
) -> Iterator[tuple[int, str, str, list[str]]]:
    """Yield the labels of a TOML file as Babel's extraction takes them: line, function, message, comments."""
    for section, labels in tomllib.loads(file.read().decode()).items():
        for label in labels.values():
            yield 0, "gettext", label, [section]
