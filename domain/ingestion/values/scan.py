"""The tokens of a dimension string: measures, words, the sign between two sides, stops; each figure ends in one of them.

    token   := measure | words | join | stop | figure
    measure := see `lengths`
    join    := "x" | "*" | "×" | "by" | "mal" | "per" …      glued to its neighbours or not: `30WX`, `24inx36in`
    stop    := "," | ";" | "|" | newline | "(" | ")" | ":" | "=" | "/" | "-"
    figure  := number (unit of another kind | counted noun)   `100 kg`, `3 drawers`, `2-seat`, `(2PC/CTN)`, `E27`

Brackets that hold no size of their own (a unit, an order of sides, a count, a leaf, a pose) are taken out beforehand.
"""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from domain.ingestion.values.labels import (
    LETTERS,
    NEUTRAL,
    bound_of,
    label_of,
    name_role,
    plain_word,
    side_word,
    words_in,
)
from domain.ingestion.values.lengths import Measure, measure_at, same_length, unit_named
from domain.ingestion.values.orders import ORDER, after_figure, with_colons, with_orders, with_seats

MEASURE: Final = "m"
WORDS: Final = "w"
JOIN: Final = "x"
OTHER: Final = "o"
UNREAD: Final = "?"
COUNT: Final = "\x01"
STOPS: Final = frozenset(",;|\n():=/-")

_WORD: Final = re.compile(r"[^\W\d_]+(?:['&/._-]+[^\W\d_]+)*+")
_RUN: Final = re.compile(r"[^\W\d_]+")
_NUMBER: Final = re.compile(r"\d|\.\d")
_DIGITS: Final = re.compile(r"[\d.,/]+")
_MEASURED_CODE: Final = re.compile(r"\d(?:[\"']|cm|mm|in|ft)$", re.I)
_ALNUM: Final = re.compile(r"[\w-]*+")
_AXES: Final = r"dia|diam|[wdhlbtpшгвд]"
_AXIS_JOIN: Final = re.compile(rf"({_AXES})x", re.I)
_JOIN_AXIS: Final = re.compile(rf"x({_AXES})", re.I)
_JOIN_WORDS: Final = frozenset("by mal par por per auf op na".split())
_AFTER_JOIN: Final = re.compile(rf"\s*+(?:\.?\d|(?:{_AXES})\W{{0,3}}\d)", re.I)
_NEAR_NUMBER: Final = re.compile(r"[\s.:=]{0,4}\.?\d")
_FOREIGN: Final = re.compile(
    r"\s?(?:kg|kgs|lbs?|pounds?|ounces?|oz|gr?|grams?|%|°|v|volts?|watts?|kw|hz|mah|lm|lumens?|cu|cuft|cf|cbm|sq|sqft|gal|gallons?|"
    r"lit(?:er|re)s?|ltr|liters?|years?|yr|days?|hours?|hrs?|gsm|dpi|k|c|f|m[²³]|cm[²³]|in[²³]|m[23](?!\d)|usd|eur)(?![^\W\d_])|\s?[²³%°$€£]",
    re.I,
)
_HYPHENATED: Final = re.compile(r"-(?!in\b|inch|ft\b|feet|foot|cm\b|mm\b)[^\W\d_]{2,}", re.I)
_NOUN: Final = re.compile(r"\s{0,2}([^\W\d_]{3,})", re.I)
_COUNTED: Final = re.compile(
    r"\s{0,2}(?:pcs?|pk|packs?|pieces?|ctns?|sets?|seats?|seaters?|pers(?:on(?:e?n|s)?)?|people|ea|pairs?|stk|stuck|x(?=\s+(?P<thing>[^\W\d_]{3,})))(?![^\W\d_])",
    re.I,
)
_TIMES: Final = re.compile(r"\s?x(?=\s+[^\W\d_]{3})", re.I)
_THINGS: Final = re.compile(
    r"drawer|door|shel[fv]|chair|stool|bench|section|legs?$|box|mattress|step|comp|table|sofa|cabinet|seat|piece|person|people|cast[oe]r|hook|light|bulb|lamp|"
    r"tier|basket|panel|pillow|cushion|beds?$|unit|year|level|pocket|handle|slat|rod|rail|bottle|cup|lever|adjust|glass|fold|reclin|wood|metal|storage|open|side|"
    r"set|pack|item|part|way|speed|cup|usb|wheel|arm|door|mirror|ottoman|rug|nest|tray|leaf|leaves|sliding|shoe|matching|stations?|colou?r|"
    r"tur|schub|stuhl|boden|bein|fach|facher|sitz|teil|porte|tiroir|chaise|pied|etagere|place|puerta|cajon|silla|pata|estante|plaza|deur|lade|stoel|poot|poten|"
    r"zits|ante?$|cassett|sedi|gamb|ripian|post|slot|pull|castors|compartment",
    re.I,
)
_COUNT_AHEAD: Final = re.compile(
    r"(?:\b(?:of|nr|no|model|style|item|sku|art|qty|quantity|count|pack|von|de|van|x|version|ref)[.:]?\s?|#)$", re.I
)
_TOLERANCE: Final = re.compile(r"(?:\+\s?/\s?-|\+-|±)\s?$")
_LABEL_WORDS: Final = 5
_HEAD: Final = re.compile(r"([wdhl])(?=[^\W\d_]{3})", re.I)


class Token(NamedTuple):
    """One token: its kind (a constant above, or the stop itself), where it stands, and the measure if it is one."""

    kind: str
    start: int
    end: int
    measure: Measure | None = None


@dataclass(slots=True)
class Scan:
    """A folded text with its tokens, and what brackets and other figures said beside the sizes."""

    text: str
    tokens: list[Token] = field(default_factory=list)
    unit: str | None = None
    asides: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    slashes: bool = True

    def said(self, first: Token, last: Token) -> str:
        """The text from one token to another."""
        return self.text[first.start : last.end]


def _follows(scan: Scan, kind: str) -> bool:
    return bool(scan.tokens) and scan.tokens[-1].kind == kind


def _add(scan: Scan, kind: str, start: int, end: int, measure: Measure | None = None) -> int:
    scan.tokens.append(Token(kind, start, end, measure))
    return end


_MADE_OF: Final = re.compile(r"[1-9][dps](?![\w\"'])(?!\s{0,2}[x*\"'])", re.I)
"""`4D` armrests, a `3P` sofa: a digit and a letter outside any sequence are a kind of thing, no size."""


def _counts(scan: Scan, start: int, measure: Measure) -> bool:
    """Whether a bare number counts things: `3 drawers`, `2-seat`, `set of 4`, `4 x chair`."""
    text, end = scan.text, measure.end
    if measure.value != measure.value.to_integral_value() or measure.value > 999 or measure.upper is not None:
        return False
    counted = _COUNTED.match(text, end)
    if _HYPHENATED.match(text, end) or (counted and side_word(plain_word(counted["thing"] or "")) is None):
        return True
    if _COUNT_AHEAD.search(text, max(0, start - 12), start) and not _follows(scan, JOIN):
        return True
    if _follows(scan, WORDS):
        before = scan.said(scan.tokens[-1], scan.tokens[-1])
        # `Depth 12 nch` has a unit misspelt; the letter of `w 2 drawers` is a word.
        if len(before) > 1 and label_of(before).role == "side":
            return False
    noun = _NOUN.match(text, end)
    if noun is None or _follows(scan, JOIN) or _follows(scan, ":"):
        return False
    word = plain_word(noun[1])
    if (
        side_word(word)
        or word in NEUTRAL
        or bound_of(word)
        or unit_named(word)
        or label_of(word).role in ("side", "noun")
    ):
        return False
    if not _THINGS.match(word):
        # A number of what nobody knows: perhaps a unit misspelt.
        scan.unread.append(f"{measure.value} {noun[1]}")
    return True


def _labelled_from(scan: Scan, start: int) -> int:
    """Where the words begin that label a figure of another kind: `Max. load: 100 kg`."""
    at = len(scan.tokens)
    colon = at > 0 and scan.tokens[at - 1].kind in (":", "=")
    at = words = at - colon
    while at and scan.tokens[at - 1].kind == WORDS and words - at < _LABEL_WORDS:
        at -= 1
    if at == words:
        return start
    said = scan.said(scan.tokens[at], scan.tokens[words - 1])
    return scan.tokens[at].start if colon or label_of(said).role == "other" else start


def _number(scan: Scan, start: int) -> int:
    """Take the number at `start`: a measure, or a figure of another kind."""
    if (kind := _MADE_OF.match(scan.text, start)) and not _follows(scan, JOIN):
        scan.asides.append(kind[0])
        return kind.end()
    measure = measure_at(scan.text, start, scan.unit, scan.slashes)
    if measure is None:
        digits = _DIGITS.match(scan.text, start)
        end = digits.end() if digits else start + 1
        scan.unread.append(scan.text[start:end])
        return _add(scan, UNREAD, start, end)
    if measure.unit is not None and not _TOLERANCE.search(scan.text, max(0, start - 6), start):
        return _add(scan, MEASURE, start, measure.end, measure)
    foreign = _FOREIGN.match(scan.text, measure.end)
    if measure.unit is None and foreign and foreign[0].strip().lower() != "f":
        scan.asides.append(scan.text[_labelled_from(scan, start) : foreign.end()].strip())
        return _add(scan, OTHER, start, foreign.end())
    if _TOLERANCE.search(scan.text, max(0, start - 6), start):
        return measure.end
    if measure.unit is None and _counts(scan, start, measure):
        noun = _HYPHENATED.match(scan.text, measure.end) or _TIMES.match(scan.text, measure.end)
        return _add(scan, WORDS, start, noun.end() if noun else measure.end)
    return _add(scan, MEASURE, start, measure.end, measure)


def _axis_ahead(scan: Scan, run: str, end: int) -> bool:
    """Whether letters stand right before a number and are its axis, not the head of a code such as `E27`."""
    low = plain_word(run)
    return low in LETTERS or low == "x" or label_of(low).role == "side"


def _glued_run(scan: Scan, start: int, end: int) -> int | None:
    """Letters that belong to the measures beside them: `30WX20`, `24x`, `xW60`, `71"HSTOOL`; None for other words."""
    run = scan.text[start:end]
    if run in ("x", "X"):
        return _add(scan, JOIN, start, end)
    both = _AXIS_JOIN.fullmatch(run)
    if both and (_AFTER_JOIN.match(scan.text, end) or _follows(scan, MEASURE)):
        _add(scan, WORDS, start, start + len(both[1]))
        return _add(scan, JOIN, end - 1, end)
    if (_JOIN_AXIS.fullmatch(run) and _NEAR_NUMBER.match(scan.text, end)) or (
        run[:1] in "xX"
        and not scan.text[end : end + 1].isdigit()
        and _follows(scan, MEASURE)
        and label_of(run[1:]).role
    ):
        _add(scan, JOIN, start, start + 1)
        return _add(scan, WORDS, start + 1, end)
    if (
        _follows(scan, MEASURE)
        and scan.tokens[-1].end == start
        and (head := _HEAD.match(run))
        and not label_of(run).role
    ):
        _add(scan, WORDS, start, start + len(head[1]))
        _add(scan, ",", start + 1, start + 1)
        return _add(scan, WORDS, start + 1, end)
    return None


def _letters(scan: Scan, start: int) -> int:
    """Take the word at `start`, with what runs together with it taken apart."""
    text = scan.text
    run = _RUN.match(text, start)
    assert run is not None
    end = run.end()
    glued = _glued_run(scan, start, end)
    if glued is not None:
        return glued
    if text[end : end + 1].isdigit() and not _axis_ahead(scan, run[0], end):
        code = _ALNUM.match(text, end)
        whole = text[start : code.end()] if code else run[0]
        said_like_a_word = (len(run[0]) > 3 and not run[0].isupper()) or (
            _follows(scan, MEASURE) and scan.tokens[-1].end == start
        )
        if said_like_a_word or _MEASURED_CODE.search(whole + text[start + len(whole) : start + len(whole) + 1]):
            # `e12"` and `Depht2` are measures whose words went wrong, no codes of articles.
            scan.unread.append(whole)
        if not re.search(r"\dx\d", whole, re.I):
            return _add(scan, WORDS, start, start + len(whole))
    if run[0].lower() in _JOIN_WORDS and scan.tokens and _AFTER_JOIN.match(text, end):
        return _add(scan, JOIN, start, end)
    if (
        not text[end : end + 1].isdigit()
        and (word := _WORD.match(text, start))
        and not text[word.end() : word.end() + 1].isdigit()
    ):
        end = word.end()
    return _add(scan, WORDS, start, end)


def _mark(scan: Scan, at: int) -> None:
    """A mark of inches or feet that stands behind its axis (`57H"`): the unit of the measure before, if it has none."""
    for place in range(len(scan.tokens) - 1, max(-1, len(scan.tokens) - 4), -1):
        token = scan.tokens[place]
        if token.measure is not None:
            if token.measure.unit is None:
                unit = unit_named(scan.text[at])
                measure = Measure(
                    token.measure.value, unit, token.measure.end, token.measure.choices, token.measure.other
                )
                scan.tokens[place] = Token(MEASURE, token.start, token.end, measure)
            return
        if token.kind != WORDS:
            return


def tokenise(scan: Scan) -> Scan:
    """Fill `scan.tokens` from its text, in time by its length."""
    text, position, size = scan.text, 0, len(scan.text)
    while position < size:
        char = text[position]
        if char.isspace() and char != "\n":
            position += 1
        elif _NUMBER.match(text, position):
            position = _number(scan, position)
        elif char.isalpha():
            position = _letters(scan, position)
        elif char == COUNT:
            position = text.find(COUNT, position + 1) + 1 or size
        elif char == ORDER:
            position = _add(scan, ORDER, position, text.find(ORDER, position + 1) + 1 or size)
        elif char in "x*":
            position = _add(scan, JOIN, position, position + 1)
        else:
            if char in STOPS:
                _add(scan, char, position, position + 1)
            elif char in "\"'":
                _mark(scan, position)
            position += 1
    return scan


_BRACKET: Final = re.compile(r"\(([^()]*)\)")
_BARE_COUNT: Final = re.compile(
    r"\s*(?:x\s*)?(\d{1,3})\s*(?:x|pcs?\.?|pieces?|stk|stück)?\s*|\s*set of (\d{1,3})\s*", re.I
)
_ALL_COUNTS: Final = re.compile(r"[\s\d]*\d\s*(?:pcs?|pk|sets?|pieces?)?\s*/\s*(?:ctn|carton|box|pack)\.?\s*", re.I)
_LEAF: Final = re.compile(r"leaf|leaves|\d\s*\+|\+\s*\d|auszug|rallonge|extension", re.I)
_TRAILING_LEAF: Final = re.compile(
    r"(?:\+|\bwith|\bw/|\band|\bplus)\s{0,2}(?:\(?\d\)?\s{0,2}x?\s{0,2})?\d[\d ./-]{0,9}\s{0,2}(?:\"|in\.?|inch|cm|mm)?\s{0,2}-?(?:leaf|leaves)\b",
    re.I,
)
_CORNER: Final = re.compile(
    r"(?<=[^\W\d_])\s+(?:en|em)\s+[LU](?=\s+\d)|\b[LU][ -]?(?:shaped?|förmig\w{0,2}|form)\b", re.I
)
"""The shape of a corner piece, which is no axis."""
_WITH: Final = re.compile(r"(?<![^\W_])w/(?=\s|[^\W\d_]{3})", re.I)
_SLASH: Final = re.compile(r"(?<=[a-zA-Z\"'])\s{0,3}/\s{0,3}(?=[\dWDHLBTwdhlbt])")
_JOINS: Final = re.compile(r"(?<=[\d\"'\sa-zA-Z])[xX*](?=[\s\dWDHLBTwdhlbt])")
_SLASHES: Final = 8
"""How many slashes are looked at: each is weighed against the whole text."""


def _bracket(scan: Scan, match: re.Match[str]) -> str:
    """What to read in place of a bracket: a count, nothing, its words, or the bracket as it is."""
    inside = match[1].strip(" .:")
    if ORDER in inside:
        return f" {inside} "
    if unit := unit_named(re.sub(r"^(?:in|all in|alle in|maße in|en)\s+(?=\w)", "", inside, flags=re.I)):
        scan.unit = unit
        return " "
    if count := _BARE_COUNT.fullmatch(match[1]):
        return match[0] if after_figure(scan.text, match.start()) else f" {COUNT}{count[1] or count[2]}{COUNT} "
    if _ALL_COUNTS.fullmatch(match[1]):
        scan.asides.append(inside)
        return " "
    if not re.search(r"\d", inside):
        return f" {inside} " if label_of(inside).role == "side" else " "
    if _LEAF.search(inside) or (":" not in inside and (name_role(inside) == "pose" or "up" in words_in(inside))):
        scan.asides.append(inside)
        return " "
    return match[0]


def _twice(text: str) -> str:
    """`text` with a bar for the slash that parts two statements of one size: `80 x 40 x 75 cm / 31 x 16 x 30 in`."""
    for slash in islice(_SLASH.finditer(text), _SLASHES):
        before, behind = (len(_JOINS.findall(part)) for part in (text[: slash.start()], text[slash.end() :]))
        if before == behind and before:
            return f"{text[: slash.start()]} | {text[slash.end() :]}"
    return text


_UNIT_AHEAD: Final = re.compile(
    r"(?P<head>[^\d\"']{0,120}?)(?<![^\W_])(?:in\s|en\s|в\s)?(?P<unit>cm|mm|[cz]enti?met(?:er|re)s?|millimet(?:er|re)s?|inch(?:es)?|zoll|см|мм|in(?=\s?:))\.?(?![^\W_])(?=[^\d]{0,40}\d)",
    re.I,
)
"""A unit before the first figure: `Maße in cm: 80x60x40`, `cm 80 x 60`."""


def scanned(flat: str, unit: str | None = None) -> Scan:
    """The tokens of a folded text; `unit` is the column's."""
    flat = _CORNER.sub(" ", flat)
    scan = Scan(_WITH.sub("with ", flat) if "/" in flat else flat, unit=unit)
    scan.text = with_orders(with_colons(with_seats(scan.text)))
    if ahead := _UNIT_AHEAD.match(scan.text):
        scan.unit = unit_named(ahead["unit"])
        scan.text = f"{ahead['head']} {scan.text[ahead.end() :]}"
    scan.text = _BRACKET.sub(lambda match: _bracket(scan, match), scan.text)
    scan.asides.extend(match[0] for match in _TRAILING_LEAF.finditer(scan.text))
    scan.text = _TRAILING_LEAF.sub(" ", scan.text)
    if "/" in scan.text:
        scan.text = _twice(scan.text)
    slashed = re.search(r"\d[^\w/]*/\s*\d[^/x]*/\s*\d", scan.text)
    scan.slashes = not slashed or bool(re.search(r"\d\W{0,3}[x*]\W{0,3}\d", scan.text, re.I))
    return tokenise(scan)


_REPEATED: Final = frozenset((WORDS, "(", "/", "="))


def _repeats(scan: Scan, between: list[Token], first: Token, second: Token) -> bool:
    """Whether the second of two measures is the first once more, in another unit: `30"W (76 cm)`, `80 cm / 31.5"`."""
    if len(between) > 3 or not between or any(token.kind not in _REPEATED for token in between):
        return False
    assert first.measure is not None
    assert second.measure is not None
    return second.measure.unit is not None and same_length(first.measure, second.measure, scan.unit)


def _begins(tokens: list[Token], at: int) -> bool:
    """Whether a measure is the first of a sequence."""
    following = (token.kind for token in tokens[at + 1 : at + 4] if token.kind != WORDS)
    return next(following, "") == JOIN


def without_repeats(scan: Scan) -> list[Token]:
    """The tokens without measures that only repeat the one before them, and without the brackets around those."""
    kept: list[Token] = []
    last = -1
    for at, token in enumerate(scan.tokens):
        if token.kind == MEASURE:
            if last >= 0 and _repeats(scan, kept[last + 1 :], kept[last], token) and not _begins(scan.tokens, at):
                continue
            last = len(kept)
        kept.append(token)
    return kept
