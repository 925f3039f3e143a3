"""Results of parsing cells, and cleaning of texts from control characters, double encoding, markup and spreadsheet prefixes."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar

from domain.ingestion.data import load_word_set
from domain.kernel.problems import ProblemKind

# Results of parsing.


T = TypeVar("T")

_MAX_QUOTED_CHARS = 80


@dataclass(frozen=True, slots=True)
class ParseFault:
    """Reason why a cell was not parsed, or only in part.

    Attributes:
        problem: The kind of the fault.
        detail: The sentence for people.
    """

    problem: ProblemKind
    detail: str


@dataclass(frozen=True, slots=True)
class ParseResult(Generic[T]):
    """Result of parsing a cell, which can have a value, faults, both or neither.

    Results are cached, so treat values as read-only.

    Attributes:
        value: The parsed value, or None if the cell contains none.
        faults: The reasons why the cell, or a part of it, was not parsed.
    """

    value: T | None = None
    faults: tuple[ParseFault, ...] = ()


NO_VALUE: Final[ParseResult[Any]] = ParseResult()
"""Result for a blank cell or a placeholder such as `n/a`: no value and no faults."""


def quote_text(text: str) -> str:
    """Return the text in quotation marks for use in a message; a long text is shortened."""
    # Splitting is limited, since a long text can be quoted in many faults.
    flat = " ".join(text.split(None, _MAX_QUOTED_CHARS))
    return f'"{flat}"' if len(flat) <= _MAX_QUOTED_CHARS else f'"{flat[:_MAX_QUOTED_CHARS]}…"'


def build_conflict_fault(text: str, reason: str) -> ParseFault:
    """Build a fault of the kind conflict, for a value that is used nevertheless.

    Args:
        text: The cell, which the detail quotes.
        reason: The rest of the sentence after the quotation, such as "states the same dimension twice".
    """
    return ParseFault(ProblemKind.CONFLICT, f"{quote_text(text)} {reason}.")


def build_fault_result(problem: ProblemKind, text: str, reason: str) -> ParseResult[Any]:
    """Build a result without a value and with one fault.

    Args:
        problem: The kind of the fault.
        text: The cell, which the detail quotes.
        reason: The rest of the sentence after the quotation, such as "is not a number".
    """
    return ParseResult(None, (ParseFault(problem, f"{quote_text(text)} {reason}."),))


def build_unreadable_result(text: str, reason: str) -> ParseResult[Any]:
    """Build a result without a value and with a fault of the kind unreadable.

    Args:
        text: The cell, which the detail quotes.
        reason: The rest of the sentence after the quotation, such as "is not a number".
    """
    return build_fault_result(ProblemKind.UNREADABLE, text, reason)


def build_placeholder_result(text: str) -> ParseResult[Any]:
    """Return the result for a size cell without a value: a fault for `?`, `.` or `-`, else NO_VALUE."""
    return (
        build_unreadable_result(text, "is a placeholder instead of a measure")
        if text.strip() and not text.strip(" ?.-–—")
        else NO_VALUE
    )


def build_too_long_result(text: str, max_chars: int) -> ParseResult[Any]:
    """Build a result without a value and with the fault that a text is longer than `max_chars` characters."""
    return build_fault_result(ProblemKind.TOO_LONG, text, f"is longer than {max_chars} characters")


# Lone surrogates, which JSON can contain but a stored or sent text cannot.


def replace_text_surrogates(text: str) -> str:
    """Join surrogate pairs in a text and replace lone surrogates by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates by U+FFFD in all texts of a cell or a row of cells."""
    if isinstance(value, str):
        return replace_text_surrogates(value)
    if isinstance(value, dict):
        return {replace_text_surrogates(str(name)): replace_surrogates(entry) for name, entry in value.items()}
    return [replace_surrogates(entry) for entry in value] if isinstance(value, list | tuple) else value


P = ParamSpec("P")
PLACEHOLDERS = load_word_set("texts", "placeholders")
"""Texts in lower case that mean that a cell has no value, such as `n/a`."""

_LONGEST_PLACEHOLDER = max(map(len, PLACEHOLDERS))
_CLEAN = re.compile("[!-~]+(?: [!-~]+)*")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200d\u2060\ufeff\ufffe\uffff\ud800-\udfff]")
_NOT_PLAIN = re.compile("[^ -~]")
_MAYBE_DOUBLY_ENCODED = re.compile("[ÂÃâÄÅ]")
_RUN = re.compile("[\x80-\xff€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]{2,}")
_SPACES = re.compile(r"\s+")
_INTEGRAL = re.compile(r"\d+\.0+")
_SPREADSHEET_PREFIXES = ("'", "’", "=")
_TEXT_FIELDS = ("name", "value", "title", "label", "text", "amount", "url", "src")
MAX_TITLE = 1000
MAX_TEXT = 65536


_BYTE_BY_CHARACTER = {ord(char): byte for byte in range(128, 160) for char in bytes([byte]).decode("cp1252", "ignore")}
"""Bytes 0x80 to 0x9F by the character that Windows-1252 assigns to them, for `str.translate`.

Five of these bytes have no character in Windows-1252 and are omitted.
"""


def _reinterpret_as_utf8(text: str) -> str | None:
    """Encode a text as Windows-1252, and return the bytes decoded as UTF-8, or None if this is impossible."""
    try:
        return text.translate(_BYTE_BY_CHARACTER).encode("latin-1").decode()
    except UnicodeError:
        return None


def _repair_characters(match: re.Match[str]) -> str:
    # In a cell that also contains correct accents, only the clearest signatures prove a second encoding.
    return (_reinterpret_as_utf8(match[0]) if match[0][0] in "ÂÃâ" else None) or match[0]


def repair_encoding(text: str) -> str:
    """Correct characters in a text that were encoded as UTF-8 but decoded as Windows-1252 (`Ã¤` for `ä`)."""
    if not _MAYBE_DOUBLY_ENCODED.search(text):
        return text
    whole = _reinterpret_as_utf8(text)
    return _RUN.sub(_repair_characters, text) if whole is None else whole


def _repair_and_remove_controls(text: str) -> str:
    """Correct double encoding in a text and remove control characters."""
    return _CONTROL.sub("", repair_encoding(text)).replace("\xa0", " ") if _NOT_PLAIN.search(text) else text


def clean_line(text: str) -> str:
    """Return the text on one line, without double encoding, control characters and repeated spaces."""
    return text if _CLEAN.fullmatch(text) else _SPACES.sub(" ", _repair_and_remove_controls(text)).strip()


def clean_value(text: str) -> str | None:
    """Return the cleaned text of a cell, or None if the text is blank or a placeholder such as `n/a`."""
    cleaned = clean_line(text)
    return None if len(cleaned) <= _LONGEST_PLACEHOLDER and cleaned.lower() in PLACEHOLDERS else cleaned


def cell_parser(
    max_chars: int | None = None,
    cache_size: int = 16384,
    parse_blank: Callable[[str], ParseResult[Any]] = lambda text: NO_VALUE,
) -> Callable[[Callable[Concatenate[str, str, P], ParseResult[T]]], Callable[Concatenate[str, P], ParseResult[T]]]:
    """Return a decorator that adds cleaning, a length limit and a cache to a parser of cells.

    The decorated function receives the text of a cell, the cleaned text (`clean_value`), and further arguments. Its callers omit the
    cleaned text.

    Args:
        max_chars: The maximum number of characters of a cell, or None for no limit.
        cache_size: The maximum number of cached results.
        parse_blank: Returns the result for a blank cell or a placeholder.
    """

    def decorate(
        parse: Callable[Concatenate[str, str, P], ParseResult[T]],
    ) -> Callable[Concatenate[str, P], ParseResult[T]]:
        def read(text: str, *args: P.args, **kwargs: P.kwargs) -> ParseResult[T]:
            if max_chars is not None and len(text) > max_chars:
                return build_too_long_result(text, max_chars)
            given = clean_value(text)
            return parse_blank(text) if given is None else parse(text, given, *args, **kwargs)

        # Not functools.wraps, which would show the signature of `parse`.
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(read, name, getattr(parse, name))
        return lru_cache(maxsize=cache_size)(read)  # type: ignore[return-value]  # functools forgets the parameters

    return decorate


def clean_lines(text: str) -> str:
    """Clean a text of several lines line by line, and replace several blank lines by one."""
    lines = [_SPACES.sub(" ", line).strip() for line in _repair_and_remove_controls(text).splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


@lru_cache(maxsize=65536)
def clean_code(text: str) -> str | None:
    """Clean a vendor's code, and remove a leading apostrophe and a trailing `.0` from spreadsheets. Return None for placeholders."""
    cleaned = clean_value(text)
    if cleaned is None or not (cleaned.startswith(_SPREADSHEET_PREFIXES) or cleaned.endswith("0")):
        return cleaned
    if cleaned[0] in "'’" and len(cleaned) > 1:
        cleaned = cleaned[1:].strip()
    if cleaned.startswith('="') and cleaned.endswith('"'):
        cleaned = cleaned[2:-1].strip()
    if _INTEGRAL.fullmatch(cleaned):
        cleaned = cleaned.split(".")[0]
    return None if cleaned.lower() in PLACEHOLDERS else cleaned


def convert_to_text(cell: Any) -> str:
    """Convert a cell to text: numbers without trailing zeros, `true` or `false`, lists joined with commas.

    The text of an object is that of its field `name`, `value`, `title` or similar, or else an empty string.
    """
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return repr(cell)
    if isinstance(cell, int | Decimal):
        plain = format(cell, "f")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    if isinstance(cell, dict):
        return next((convert_to_text(cell[key]) for key in _TEXT_FIELDS if cell.get(key) is not None), "")
    if isinstance(cell, list | tuple):
        return ", ".join(filter(None, map(convert_to_text, cell)))
    return ""


_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z]\w*);")
# Not a valid character reference; converting such a number is slow and fails beyond 4,300 digits.
_INVALID_REFERENCE = re.compile(r"&#\d{100,};?")
_OPENING = re.compile(r"<[a-zA-Z/!]")
_TAG = re.compile(r"<(?:(/)\s*+)?([a-zA-Z][^\s/>\x00]*+)")
_TAG_REST = re.compile(r"""(?:=\s*+(?:"[^"]*+"|'[^']*+')|[^>])*+>""")
_COMMENT = re.compile(r"<(?:!--|!\[CDATA\[|[!?/])")
_COMMENT_ENDS = {"<!--": "-->", "<![CDATA[": "]]>"}
_SCRIPT_ENDS = {name: re.compile(rf"(?i)</\s*+{name}\s*+>") for name in ("script", "style")}
_BLOCK_ELEMENTS = frozenset(
    "p div br li ul ol tr table h1 h2 h3 h4 h5 h6 section article header footer hr dd dt dl blockquote pre".split()
)
_IGNORED_ELEMENTS = frozenset("script style template noscript head iframe svg".split())


def _has_markup(text: str) -> bool:
    """Return whether a text contains an HTML tag or entity."""
    opening = _OPENING.search(text) if "<" in text else None
    if opening is not None and text.find(">", opening.end()) >= 0:
        return True
    return "&" in text and _ENTITY.search(text) is not None


def _remove_tags(text: str) -> str:
    """Remove HTML tags, scripts and comments from a text, resolve entities, and add a line break at each block."""
    # The time is linear, even if tags or quotes are not closed. An unclosed tag at the end counts as text.
    parts: list[str] = []
    position = ignored_depth = 0
    has_closed_quotes, end_of_last_tag = True, text.rfind(">") + 1

    def find_end(end: str, start: int) -> int:
        """Return the index after the next occurrence of `end`, or the length of the text if there is none."""
        found = text.find(end, start)
        return len(text) if found < 0 else found + len(end)

    while True:
        start = text.find("<", position, end_of_last_tag)
        if not ignored_depth:
            content = text[position:] if start < 0 else text[position:start]
            parts.append(html.unescape(_INVALID_REFERENCE.sub("\ufffd", content)))
        if start < 0:
            return "".join(parts)
        tag = _TAG.match(text, start)
        if tag is None:
            comment = _COMMENT.match(text, start)
            position = find_end(_COMMENT_ENDS.get(comment[0], ">"), comment.end()) if comment else start + 1
            if comment is None and not ignored_depth:
                parts.append("<")  # not the start of markup
            continue
        # A tag ends at the next `>` outside quoted values, or at the next `>` if a quote is not closed.
        tag_rest = _TAG_REST.match(text, tag.end()) if has_closed_quotes else None
        has_closed_quotes = tag_rest is not None
        position = tag_rest.end() if tag_rest else find_end(">", tag.end())
        name, closed = tag[2].lower(), tag[1] or text[position - 2] == "/"
        if name in _IGNORED_ELEMENTS:
            ignored_depth = max(0, ignored_depth + (not tag[1]) - bool(closed))
        elif name in _BLOCK_ELEMENTS:
            parts.append(
                "\n- " if name == "li" and not tag[1] else "\n" if not tag[1] or name not in ("br", "hr") else ""
            )
        if not closed and name in _SCRIPT_ENDS:
            ending = _SCRIPT_ENDS[name].search(text, position)
            position = ending.start() if ending else len(text)


@lru_cache(maxsize=128)
def strip_markup(text: str) -> str:
    """Convert HTML to plain text of several lines, and clean the text."""
    if not _has_markup(text):
        return clean_lines(text)
    return re.sub(r"\n- *\n", "\n- ", re.sub(r"\n{2,}", "\n", clean_lines(_remove_tags(text))))


@lru_cache(maxsize=16384)
def remove_line_markup(text: str) -> str:
    """Remove HTML tags from a text of one line and resolve entities such as `&amp;`."""
    return " ".join(_remove_tags(text).split()) if _has_markup(text) else text


@cell_parser(cache_size=65536)
def parse_line(text: str, cleaned: str) -> ParseResult[str]:
    """Parse a text of one line and remove markup. Above MAX_TITLE characters, the result has the fault too_long.

    Args:
        text: The text of the cell.
        cleaned: The cleaned text, which `cell_parser` passes.
    """
    found = remove_line_markup(cleaned)
    return build_too_long_result(found, MAX_TITLE) if len(found) > MAX_TITLE else ParseResult(found or None)


@cell_parser(cache_size=128)
def parse_multiline_text(text: str, cleaned: str) -> ParseResult[str]:
    """Parse a text of several lines and remove markup. Above MAX_TEXT characters, the result has the fault too_long."""
    found = strip_markup(text)
    return build_too_long_result(found, MAX_TEXT) if len(found) > MAX_TEXT else ParseResult(found or None)
