"""Text as vendors type it, freed of what their tools left behind: guards, control characters, double encoding, markup."""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from domain.ingestion.values.markup import flattened, has_markup
from domain.ingestion.values.parsed import NOTHING, Parsed, refused
from domain.kernel.problems import ProblemKind

PLACEHOLDERS: Final = frozenset(
    (
        "",
        *(". .. ... ? ?? - -- --- – — _ / \\ * n/a #n/a na n.a. n.a none null nil nan tbd tba tbc undefined".split()),
        *("#ref! #value! #name? #div/0! #null! (blank) [blank] blank".split()),
        "no old price",
        "not applicable",
        "not available yet",
        "please select",
        "to be determined",
        "to be announced",
        "k.a.",
        "keine angabe",
        "sin datos",
        "no aplica",
    )
)
"""Lower-case texts that stand for "nothing stated"."""

_LONGEST_PLACEHOLDER: Final = max(map(len, PLACEHOLDERS))
_CLEAN: Final = re.compile("[!-~]+(?: [!-~]+)*")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200d\u2060\ufeff\ufffe\uffff\ud800-\udfff]")
_NOT_PLAIN: Final = re.compile("[^ -~]")
_SUSPECT: Final = re.compile("[ÂÃâÄÅ]")
_RUN: Final = re.compile("[\x80-\xff€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]{2,}")
_SPACES: Final = re.compile(r"\s+")
_INTEGRAL: Final = re.compile(r"\d+\.0+")
_GUARDED: Final = ("'", "’", "=")
_NAMING: Final = ("name", "value", "title", "label", "text", "amount", "url", "src")
MAX_TITLE: Final = 1000
MAX_TEXT: Final = 65536


def _cp1252_bytes(text: str) -> bytes | None:
    """The bytes a Windows-1252 reader would have taken for `text`; C1 controls stand for themselves."""
    out = bytearray()
    for char in text:
        if "\x80" <= char <= "\x9f":
            out.append(ord(char))
            continue
        try:
            out += char.encode("cp1252")
        except UnicodeEncodeError:
            return None
    return bytes(out)


def _decoded(text: str) -> str | None:
    raw = _cp1252_bytes(text)
    try:
        return None if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _repaired_run(match: re.Match[str]) -> str:
    run = match.group()
    # Inside a cell that also holds sound accents only the plainest signatures prove a second encoding.
    if run[0] not in "ÂÃâ":
        return run
    return _decoded(run) or run


def repair(text: str) -> str:
    """`text` with UTF-8 that was once read as Windows-1252 put right, where decoding proves it; else unchanged."""
    if not _SUSPECT.search(text):
        return text
    whole = _decoded(text)
    return whole if whole is not None else _RUN.sub(_repaired_run, text)


def clean(text: str) -> str:
    """`text` on one line: repaired, without control characters, blanks made single, trimmed. Wording stays."""
    if _CLEAN.fullmatch(text):
        return text
    if _NOT_PLAIN.search(text):
        text = _CONTROL.sub("", repair(text)).replace("\xa0", " ")
    return _SPACES.sub(" ", text).strip()


def stated(text: str) -> str | None:
    """`text` cleaned, or None when it is blank or a placeholder for nothing."""
    cleaned = text if _CLEAN.fullmatch(text) else clean(text)
    return None if len(cleaned) <= _LONGEST_PLACEHOLDER and cleaned.lower() in PLACEHOLDERS else cleaned


def paragraphs(text: str) -> str:
    """`text` repaired and trimmed line by line; lines are kept, runs of blank lines are not."""
    if _NOT_PLAIN.search(text):
        text = _CONTROL.sub("", repair(text)).replace("\xa0", " ")
    lines = [_SPACES.sub(" ", line).strip() for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


@lru_cache(maxsize=65536)
def code(text: str) -> str | None:
    """`text` as a vendor's code: cleaned, without the spreadsheet's apostrophe guard or the `.0` of a float."""
    cleaned = stated(text)
    if cleaned is None or not (cleaned.startswith(_GUARDED) or cleaned.endswith("0")):
        return cleaned
    if cleaned[0] in "'’" and len(cleaned) > 1:
        cleaned = cleaned[1:].strip()
    if cleaned.startswith('="') and cleaned.endswith('"'):
        cleaned = cleaned[2:-1].strip()
    if _INTEGRAL.fullmatch(cleaned):
        cleaned = cleaned.split(".")[0]
    return None if cleaned.lower() in PLACEHOLDERS else cleaned


def _number_text(cell: float | Decimal) -> str:
    if isinstance(cell, float):
        return repr(cell)
    plain = format(cell, "f") if isinstance(cell, Decimal) else str(cell)
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def as_text(cell: Any) -> str:
    """A cell as text: numbers plain and without trailing zeros, yes/no as true/false, lists joined with `, `.

    Of an object the member that names it (`name`, `value`, `title` …) stands for it; without one it says nothing.
    """
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int | float | Decimal):
        return _number_text(cell)
    if isinstance(cell, dict):
        return next((as_text(cell[key]) for key in _NAMING if cell.get(key) is not None), "")
    if isinstance(cell, list | tuple):
        return ", ".join(filter(None, map(as_text, cell)))
    return ""


@lru_cache(maxsize=128)
def plain(text: str) -> str:
    """`text` without markup and entities, as lines; text without markup keeps its wording."""
    if not has_markup(text):
        return paragraphs(text)
    return re.sub(r"\n- *\n", "\n- ", re.sub(r"\n{2,}", "\n", paragraphs(flattened(text))))


@lru_cache(maxsize=16384)
def unescaped(text: str) -> str:
    """A one-line text whose entities (`&amp;`) and stray tags are resolved."""
    return " ".join(flattened(text).split()) if has_markup(text) else text


@lru_cache(maxsize=65536)
def line_of_text(text: str) -> Parsed[str]:
    """A one-line text without markup, or nothing for a placeholder. Problem: too_long."""
    given = stated(text)
    if given is None:
        return NOTHING
    found = unescaped(given)
    return (
        Parsed(found or None)
        if len(found) <= MAX_TITLE
        else refused(ProblemKind.TOO_LONG, found, f"is longer than {MAX_TITLE} characters")
    )


@lru_cache(maxsize=128)
def body_of_text(text: str) -> Parsed[str]:
    """A longer text as plain lines. Problem: too_long."""
    if stated(text) is None:
        return NOTHING
    found = plain(text)
    return (
        Parsed(found or None)
        if len(found) <= MAX_TEXT
        else refused(ProblemKind.TOO_LONG, found, f"is longer than {MAX_TEXT} characters")
    )
