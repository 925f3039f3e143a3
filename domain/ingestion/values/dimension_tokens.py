"""The measures of a dimension string in order, each with its letter, the text before it and how it is joined."""

import re
from dataclasses import dataclass, replace
from typing import Final

from domain.ingestion.values.lengths import Measure, measure_at
from domain.ingestion.values.sides import LETTERS, WORDS

_LETTER: Final = r"dia(?:m(?:eter)?)?|[wdhlbt]"
_WORD: Final = "|".join(sorted(map(re.escape, WORDS), key=len, reverse=True))
_AFTER: Final = re.compile(
    rf"[\s.]*(?P<axis>(?:{_WORD})(?![^\W\d_])|(?:{_LETTER})(?=x\s*[\d.]|x\s+\d|[^a-zA-Z]|$)|(?:{_LETTER})(?=x\s))(?!\s*[:=])",
    re.I,
)
_BEFORE: Final = re.compile(
    rf"^(?P<join>[\s.,;]*x?)[\s,;.]*(?P<axis>(?:{_WORD})|(?:{_LETTER}))\s*[.:=]?\s*(?P<lone>)$",
    re.I,
)
_JOIN: Final = re.compile(r"^[\s.]*[x*][\s.]*$", re.I)
_BLANK: Final = re.compile(r"^[\s,.]*$")
_START: Final = re.compile(r"(?<![\d.])\.?\d")
_FOREIGN: Final = re.compile(r"\s?(?:kg|lbs?|pcs?|pack|person|seater|drawer|door|%|w\b(?=att)|piece|cu)", re.I)
_FOREIGN_MASS: Final = re.compile(r"\s?(?:kg|lbs?|%)", re.I)


@dataclass(frozen=True, slots=True)
class Token:
    """One measure. `side` is its axis (`length` for L), `joined` that it goes on the sequence of the one before it."""

    measure: Measure
    start: int
    side: str | None
    lead: str
    joined: bool
    foreign: bool = False


def axis_side(word: str) -> str | None:
    """The side of an axis letter or word, or None."""
    lowered = word.lower()
    return LETTERS.get(lowered) or WORDS.get(lowered) or ("diameter" if lowered.startswith("dia") else None)


def _led(lead: str, token: Token, previous: Token | None) -> Token:
    """`token` with what the text before it says: a prefixed axis, an `x`, or words."""
    if _JOIN.match(lead) and previous is not None:
        return replace(token, joined=True)
    prefix = _BEFORE.match(lead)
    if prefix and token.side is None:
        joined = previous is not None and ("x" in prefix["join"].lower() or ":" not in lead)
        return replace(token, side=axis_side(prefix["axis"]), joined=joined, lead="" if joined else lead)
    if _BLANK.match(lead) and previous is not None and previous.side and token.side:
        return replace(token, joined=True)
    return token


def _prefixed(text: str) -> bool:
    """Whether axes stand before their measures (`W 80 x D 60`): then nothing after a measure is its axis."""
    start = _START.search(text)
    if start is None or not _BEFORE.match(text[: start.start()]):
        return False
    first = measure_at(text, start.start())
    return first is not None and len(re.findall(rf"(?:^|[^\w])(?:{_LETTER}|{_WORD})\s*[.:=]?\s*\d", text, re.I)) > 1


def tokens(text: str) -> list[Token]:
    """The measures of a folded text, brackets blanked out, in order."""
    found: list[Token] = []
    prefixed = _prefixed(text)
    position = lead_from = 0
    while start := _START.search(text, position):
        measure = measure_at(text, start.start())
        if measure is None:
            position = start.end()
            continue
        after = None if prefixed else _AFTER.match(text, measure.end)
        end = after.end() if after else measure.end
        foreign = measure.unit is None and after is None and bool(_FOREIGN.match(text, measure.end))
        if foreign and not _FOREIGN_MASS.match(text, measure.end):
            # A count (`2-SEATER`, `3 drawers`) is part of the words around it.
            position = end
            continue
        side = axis_side(after["axis"]) if after else None
        lead = text[lead_from : start.start()]
        token = Token(measure, start.start(), side, lead, False, foreign)
        found.append(_led(lead, token, found[-1] if found else None))
        position = lead_from = end
    return found
