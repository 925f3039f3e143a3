"""Orders of sides that a text states (`W x D x H`, `(ШхГхВ)`, `Breite x Tiefe x Höhe`), as letters between marks.

order := axis sign axis [sign axis] | axis axis axis ")"     an axis is a letter or a word of a side, each once
"""

import re
from functools import partial
from typing import Final

from domain.ingestion.values.labels import LETTERS, label_of, plain_word, side_word

ORDER: Final = "\x02"
_AXIS_WORD: Final = r"[wdhlbtpшгвд]|br|dia|[^\W\d_]{4,12}"
_ORDER: Final = re.compile(
    rf"(?<![^\W_])({_AXIS_WORD})\s{{0,2}}[x*/-]\s{{0,2}}({_AXIS_WORD})(?:\s{{0,2}}[x*/-]\s{{0,2}}({_AXIS_WORD}))?(?![^\W_])",
    re.I,
)
_GLUED_ORDER: Final = re.compile(r"(?<![^\W_])([wdhlbtpшгвд])x?([wdhlbtpшгвд])x?([wdhlbtpшгвд])(?=\s{0,2}[):])", re.I)
_SEAT_BEHIND: Final = re.compile(r"(?<![^\W_])(h|[wbtdlp]\s?x\s?[wbtdlp]\s?x\s?h)\s?/\s?sh\b", re.I)
_SEAT_FIGURE: Final = re.compile(r"(\d)\s?/\s?(\d{2,3}(?:[.,]\d)?)(?![\d/])")
_NOT_AFTER: Final = frozenset("0123456789\"'")


def _initial(word: str) -> str | None:
    """The letter of the side that a word or letter of an order names."""
    low = plain_word(word)
    if low in LETTERS:
        return {"b": "w", "t": "d", "p": "d"}.get(low, low)
    side = side_word(low)
    return {"diameter": "o"}.get(side, side[0]) if side else None


def after_figure(text: str, position: int) -> bool:
    """Whether a figure or its mark stands before `position`."""
    before = text[max(0, position - 4) : position].rstrip()[-1:]
    return bool(before) and before in _NOT_AFTER


def _order_at(text: str, match: re.Match[str]) -> str:
    """What to read in place of an order of sides: its letters between marks."""
    letters = [_initial(word) for word in match.groups() if word]
    if None in letters or len(set(letters)) != len(letters) or after_figure(text, match.start()):
        return match[0]
    return f" {ORDER}{''.join(filter(None, letters))}{ORDER} "


def with_orders(text: str) -> str:
    """`text` with each order of sides (`W x D x H:`, `(LxBxH)`, `Breite x Tiefe x Höhe`) as its letters between marks."""
    for pattern in (_ORDER, _GLUED_ORDER):
        text = _replaced(pattern, text)
    return text


def with_seats(text: str) -> str:
    """`text` with the height of the seat by its name, where it stands behind that of the piece (`BxTxH/SH 60x65x110/45`)."""
    if "/" not in text or not _SEAT_BEHIND.search(text):
        return text
    return _SEAT_FIGURE.sub(r"\1, seat height \2", _SEAT_BEHIND.sub(r"\1", text), count=1)


def _replaced(pattern: re.Pattern[str], text: str) -> str:
    """Each order in `text` by its letters; what only looks like one may have another begin inside it (`size - W x D x H`)."""
    out: list[str] = []
    at = kept = 0
    while match := pattern.search(text, at):
        order = _order_at(text, match)
        if order == match[0]:
            at = match.end(1)
            continue
        out += [text[kept : match.start()], order]
        at = kept = match.end()
    return "".join((*out, text[kept:]))


_ABBREVIATED: Final = re.compile(r"(?<=[^\W\d_])\.(?=\d{2,4}(?!\d|\s?(?:\"|in)))")
"""A dot that ends a word; before inches it may as well begin a figure (`D.75"`)."""
_DASHED: Final = re.compile(r"(?<![^\W_])([^\W\d_]{1,20})\s?-\s(?=\.?\d)")


def _dashed(text: str, match: re.Match[str]) -> str:
    label = label_of(match[1]).role == "side" and not after_figure(text, match.start())
    return f"{match[1]}: " if label else match[0]


def with_colons(text: str) -> str:
    """`text` with a colon for the dash behind the name of a side (`Width - 80 cm`), and a blank for the dot of `h.75 cm`."""
    return _DASHED.sub(partial(_dashed, text), _ABBREVIATED.sub(" ", text))
