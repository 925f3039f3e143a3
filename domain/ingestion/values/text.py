"""Cleaning of vendors' texts from spreadsheet guards, control characters, double encoding and markup."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar

from domain.ingestion.data import words
from domain.kernel.problems import ProblemKind

# Results of parsing.


T = TypeVar("T")

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Fault:
    """Reason why a value was not read, or not completely; `detail` is a sentence."""

    problem: ProblemKind
    detail: str


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """Result of parsing a value: the value, None if the text states none, and the faults; both can occur together.

    Values are shared between results for equal text: treat them as read-only.
    """

    value: T | None = None
    faults: tuple[Fault, ...] = ()


NOTHING: Final[Parsed[Any]] = Parsed()
"""Result for a blank or a placeholder: no value and no faults."""


def quoted(text: str) -> str:
    """Return `text` in quotation marks, shortened for a sentence."""
    # Splitting is limited, since a long text can be quoted in many faults.
    flat = " ".join(text.split(None, _SHOWN))
    return f'"{flat}"' if len(flat) <= _SHOWN else f'"{flat[:_SHOWN]}…"'


def conflict(text: str, reason: str) -> Fault:
    """Return the fault of a value that is read despite a conflict: `text` `reason`."""
    return Fault(ProblemKind.CONFLICT, f"{quoted(text)} {reason}.")


def refused(problem: ProblemKind, text: str, reason: str) -> Parsed[Any]:
    """Return a result without a value and with the fault that `text` `reason`."""
    return Parsed(None, (Fault(problem, f"{quoted(text)} {reason}."),))


def unreadable(text: str, reason: str) -> Parsed[Any]:
    """Return a result without a value and with the fault that `text` `reason`, of kind unreadable."""
    return refused(ProblemKind.UNREADABLE, text, reason)


def not_said(text: str) -> Parsed[Any]:
    """Return nothing for a placeholder; a `?`, `.` or `-` in place of a measure is a fault."""
    return unreadable(text, "is in place of a measure") if text.strip() and not text.strip(" ?.-–—") else NOTHING


def overlong(text: str, most: int) -> Parsed[Any]:
    """Return the refusal of a text that is longer than `most` characters."""
    return refused(ProblemKind.TOO_LONG, text, f"is longer than {most} characters")


# Lone surrogates, which JSON can contain but a stored or sent text cannot.


def whole_text(text: str) -> str:
    """Return `text` with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole(value: Any) -> Any:
    """Return a cell, or a row of cells, without lone surrogates."""
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {whole_text(str(name)): whole(entry) for name, entry in value.items()}
    return [whole(entry) for entry in value] if isinstance(value, list | tuple) else value


P = ParamSpec("P")
PLACEHOLDERS = words("texts", "placeholders")
"""Lower-case texts that mean that no value is stated."""

_LONGEST_PLACEHOLDER = max(map(len, PLACEHOLDERS))
_CLEAN = re.compile("[!-~]+(?: [!-~]+)*")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200d\u2060\ufeff\ufffe\uffff\ud800-\udfff]")
_NOT_PLAIN = re.compile("[^ -~]")
_SUSPECT = re.compile("[ÂÃâÄÅ]")
_RUN = re.compile("[\x80-\xff€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]{2,}")
_SPACES = re.compile(r"\s+")
_INTEGRAL = re.compile(r"\d+\.0+")
_GUARDED = ("'", "’", "=")
_NAMING = ("name", "value", "title", "label", "text", "amount", "url", "src")
MAX_TITLE = 1000
MAX_TEXT = 65536


_LATIN = {ord(char): byte for byte in range(128, 160) for char in bytes([byte]).decode("cp1252", "ignore")}
"""Bytes of the characters that Windows-1252 has in place of C1 controls; bytes without one are unchanged."""


def _decoded(text: str) -> str | None:
    """Return `text` encoded as Windows-1252 and decoded as UTF-8, or None if that is impossible."""
    try:
        return text.translate(_LATIN).encode("latin-1").decode()
    except UnicodeError:
        return None


def _repaired_run(match: re.Match[str]) -> str:
    # In a cell that also contains correct accents, only the clearest signatures prove a second encoding.
    return (_decoded(match[0]) if match[0][0] in "ÂÃâ" else None) or match[0]


def repair(text: str) -> str:
    """Return `text` with UTF-8 that was decoded as Windows-1252 corrected where decoding proves it."""
    if not _SUSPECT.search(text):
        return text
    whole = _decoded(text)
    return _RUN.sub(_repaired_run, text) if whole is None else whole


def _legible(text: str) -> str:
    """Return `text` repaired and without control characters."""
    return _CONTROL.sub("", repair(text)).replace("\xa0", " ") if _NOT_PLAIN.search(text) else text


def clean(text: str) -> str:
    """Return `text` on one line: repaired, without control characters, with single blanks, stripped."""
    return text if _CLEAN.fullmatch(text) else _SPACES.sub(" ", _legible(text)).strip()


def stated(text: str) -> str | None:
    """Return the cleaned text, or None if it is blank or a placeholder."""
    cleaned = clean(text)
    return None if len(cleaned) <= _LONGEST_PLACEHOLDER and cleaned.lower() in PLACEHOLDERS else cleaned


def cell_parser(
    longest: int | None = None, kept: int = 16384, blank: Callable[[str], Parsed[Any]] = lambda text: NOTHING
) -> Callable[[Callable[Concatenate[str, str, P], Parsed[T]]], Callable[Concatenate[str, P], Parsed[T]]]:
    """Return a decorator that makes a cached parser of cells; the function receives a cell's text and the cleaned text.

    Args:
        longest: The maximum length; parsing by trial takes time that grows with length.
        kept: The number of cached results, by text and arguments.
        blank: The function that returns the result for blanks and placeholders.
    """

    def decorate(parse: Callable[Concatenate[str, str, P], Parsed[T]]) -> Callable[Concatenate[str, P], Parsed[T]]:
        def read(text: str, *args: P.args, **kwargs: P.kwargs) -> Parsed[T]:
            if longest is not None and len(text) > longest:
                return overlong(text, longest)
            given = stated(text)
            return blank(text) if given is None else parse(text, given, *args, **kwargs)

        # Not functools.wraps, which would show the signature of `parse`.
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(read, name, getattr(parse, name))
        return lru_cache(maxsize=kept)(read)  # type: ignore[return-value]  # functools forgets the parameters

    return decorate


def paragraphs(text: str) -> str:
    """Return `text` repaired and stripped line by line; several blank lines become one."""
    lines = [_SPACES.sub(" ", line).strip() for line in _legible(text).splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


@lru_cache(maxsize=65536)
def code(text: str) -> str | None:
    """Return `text` as a vendor's code without a spreadsheet's apostrophe or the `.0` of a float; None for placeholders."""
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


def as_text(cell: Any) -> str:
    """Return a cell as text: plain numbers without trailing zeros, true or false, lists joined with `, `.

    An object is represented by its naming member (`name`, `value`, `title` …), or by a blank text without one.
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
        return next((as_text(cell[key]) for key in _NAMING if cell.get(key) is not None), "")
    if isinstance(cell, list | tuple):
        return ", ".join(filter(None, map(as_text, cell)))
    return ""


_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z]\w*);")
# Not a valid character reference; converting such a number is slow and fails beyond 4,300 digits.
_ENDLESS = re.compile(r"&#\d{100,};?")
_OPENING = re.compile(r"<[a-zA-Z/!]")
_TAG = re.compile(r"<(?:(/)\s*+)?([a-zA-Z][^\s/>\x00]*+)")
_REST = re.compile(r"""(?:=\s*+(?:"[^"]*+"|'[^']*+')|[^>])*+>""")
_ASIDE = re.compile(r"<(?:!--|!\[CDATA\[|[!?/])")
_ASIDE_ENDS = {"<!--": "-->", "<![CDATA[": "]]>"}
_SCRIPT_ENDS = {name: re.compile(rf"(?i)</\s*+{name}\s*+>") for name in ("script", "style")}
_BLOCKS = frozenset(
    "p div br li ul ol tr table h1 h2 h3 h4 h5 h6 section article header footer hr dd dt dl blockquote pre".split()
)
_SILENT = frozenset("script style template noscript head iframe svg".split())


def _has_markup(text: str) -> bool:
    """Return whether a text contains a tag or an entity."""
    opening = _OPENING.search(text) if "<" in text else None
    if opening is not None and text.find(">", opening.end()) >= 0:
        return True
    return "&" in text and _ENTITY.search(text) is not None


def _flattened(text: str) -> str:
    """Return the text outside tags with entities resolved and a line break at each block, without scripts and comments.

    One pass reads each character a bounded number of times, even if tags or quotes are not closed. An unclosed tag at the end
    is text.
    """
    parts: list[str] = []
    at = silent = 0
    quoting, last = True, text.rfind(">") + 1

    def behind(end: str, start: int) -> int:
        """Return the index after the next `end`, or the length of the text if there is none."""
        found = text.find(end, start)
        return len(text) if found < 0 else found + len(end)

    while True:
        start = text.find("<", at, last)
        if not silent:
            content = text[at:] if start < 0 else text[at:start]
            parts.append(html.unescape(_ENDLESS.sub("\ufffd", content)))
        if start < 0:
            return "".join(parts)
        tag = _TAG.match(text, start)
        if tag is None:
            aside = _ASIDE.match(text, start)
            at = behind(_ASIDE_ENDS.get(aside[0], ">"), aside.end()) if aside else start + 1
            if aside is None and not silent:
                parts.append("<")  # not the start of markup
            continue
        # A tag ends at the next `>` outside quoted values, or at the next `>` if a quote is not closed.
        rest = _REST.match(text, tag.end()) if quoting else None
        quoting = rest is not None
        at = rest.end() if rest else behind(">", tag.end())
        name, closed = tag[2].lower(), tag[1] or text[at - 2] == "/"
        if name in _SILENT:
            silent = max(0, silent + (not tag[1]) - bool(closed))
        elif name in _BLOCKS:
            parts.append(
                "\n- " if name == "li" and not tag[1] else "\n" if not tag[1] or name not in ("br", "hr") else ""
            )
        if not closed and name in _SCRIPT_ENDS:
            ending = _SCRIPT_ENDS[name].search(text, at)
            at = ending.start() if ending else len(text)


@lru_cache(maxsize=128)
def plain(text: str) -> str:
    """Return `text` without markup and entities, as lines; the wording of other texts is unchanged."""
    if not _has_markup(text):
        return paragraphs(text)
    return re.sub(r"\n- *\n", "\n- ", re.sub(r"\n{2,}", "\n", paragraphs(_flattened(text))))


@lru_cache(maxsize=16384)
def unescaped(text: str) -> str:
    """Return a one-line text with entities (`&amp;`) resolved and tags removed."""
    return " ".join(_flattened(text).split()) if _has_markup(text) else text


@cell_parser(kept=65536)
def line_of_text(text: str, given: str) -> Parsed[str]:
    """Parse a one-line text without markup; a placeholder is nothing. Problem: too_long."""
    found = unescaped(given)
    return overlong(found, MAX_TITLE) if len(found) > MAX_TITLE else Parsed(found or None)


@cell_parser(kept=128)
def body_of_text(text: str, given: str) -> Parsed[str]:
    """Parse a long text as plain lines. Problem: too_long."""
    found = plain(text)
    return overlong(found, MAX_TEXT) if len(found) > MAX_TEXT else Parsed(found or None)
