"""Labels of figures in all supported languages, and the assignment of figures to sides.

    label     := modifier* side modifier*          ("Overall height", "hauteur d'assise", "Sitzhöhe", "heigth")
    modifier  := neutral | bound | seat | arm | free | part | noun

Neutral modifiers leave the side that of the piece; `min` marks its lowest figure and `max` its largest; seat, arm and
clearance form other measures; a part (drawer, mattress, cable) or another quantity (load, volume) excludes the figure from
the piece; any other noun names the thing whose side it is. Side words of five letters or more are recognised with one
letter wrong, missing, added or swapped. The words are in `data/labels.toml`.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rapidfuzz.distance import OSA

from domain.catalogue.data import Dimensions, Length
from domain.ingestion.data import expressions, load, meanings, words
from domain.ingestion.values.text import Fault, Parsed, conflict, unreadable

SIDES = meanings(load("labels")["sides"])
LETTERS = {"w": "width", "d": "depth", "h": "height", "l": "length", "b": "width", "t": "depth", "p": "depth"}
(
    NEUTRAL,
    _GAPS,
    _LOWER,
    _UPPER,
    SEAT,
    ARM,
    _FREE,
    _UNDER,
    _PARTS,
    _NO_SIZE,
    _STRONG_POSES,
    _WEAK_POSES,
    _REST,
    _INNER,
) = (
    words("labels", name)
    for name in "neutral gaps lower upper seat arm free under parts no_size strong_poses weak_poses rest inner".split()
)
_ROOTS = load("labels")["roots"].split()
_THICKNESS = words("labels", "thickness")
_SEQUENCE_PARTS = _INNER | words("labels", "sequence_parts")
_KNOWN = words("labels", "no_slips").union(NEUTRAL, _PARTS, SEAT, ARM, _GAPS, _NO_SIZE, _REST, _STRONG_POSES, SIDES)
_LONG_ENOUGH = 5
_LONG_SIDES = [word for word in SIDES if len(word) >= _LONG_ENOUGH]
GENERAL_ENDS = _PARTS | _LOWER | _UPPER | NEUTRAL | _FREE
"""Words that an axis can follow directly: `Drawer W`, `Max H`."""
_GLUED = re.compile(
    r"(?:minimum|maximum)?(overall|total|product|assembled|item|seat|arm|armrest|clearance)(?:product)?"
    r"(width|depth|height|length|diameter|from|weight)?([a-z]*)"
)
_LIGATURES = str.maketrans({"ß": "ss", "ł": "l", "ø": "o", "æ": "ae", "đ": "d", "œ": "oe", "ё": "е"})
_LETTER_RUNS = re.compile(r"[^\W\d_]+")
_PACKED = re.compile(r"verpa[ck]k|emballa|embala|imball|packag|pakk?et|forpack|opakow|shipping|lieferma|versandma")
_AT = re.compile(r"(?i)(?:\bà|\bat|\bauf|\bop)\s*$")
"""Preposition before the height of a seat: `Assise à 49 cm`."""
_SHORT = {"sh": "seat_height", "sd": "seat_depth", "ah": "arm_height"}


@dataclass(frozen=True, slots=True)
class Label:
    """Meaning of the words beside a figure.

    `role` is `side` (the `side` of the piece, or a measure of its seat), `largest` (a maximum), `other` (a part, or not a
    size), `noun` (a side of the thing `noun`), or blank if no side is named.
    """

    role: str = ""
    side: str | None = None
    noun: str = ""


NO_LABEL = Label()
_OTHER = Label("other")


@lru_cache(maxsize=16384)
def plain_word(word: str) -> str:
    """Return a word in lower case without accents, for comparisons."""
    low = word.lower()
    if low.isascii():
        return low
    flat = "".join(c for c in unicodedata.normalize("NFKD", low.translate(_LIGATURES)) if not unicodedata.combining(c))
    # Composing again keeps Cyrillic й, whose mark is part of the letter, comparable in one form.
    return unicodedata.normalize("NFC", flat)


def words_in(text: str) -> list[str]:
    """Return the words of a text in plain form; each run of letters is a word."""
    return [plain_word(word) for word in _LETTER_RUNS.findall(unicodedata.normalize("NFC", text))]


@lru_cache(maxsize=16384)
def side_word(word: str) -> str | None:
    """Return the side that a plain word names, also with one typing error (`length` included), or None."""
    side = SIDES.get(word)
    if side or not _LONG_ENOUGH <= len(word) < 20 or word in _KNOWN:
        return side
    meant = {SIDES[known] for known in _LONG_SIDES if OSA.distance(word, known, score_cutoff=1) <= 1}
    return meant.pop() if len(meant) == 1 else None


def _parts_of(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the sides that words name and the other words; compounds (`sitzhohe`) are split."""
    if len(words) == 2 and min(map(len, words)) <= 2 and (joined := SIDES.get("".join(words))):
        # A blank inside a word: `dept h`.
        return [joined], []
    sides: list[str] = []
    others: list[str] = []
    for word in words:
        if side := side_word(word):
            sides.append(side)
        elif root := next((root for root in _ROOTS if word.endswith(root)), None):
            sides.append(SIDES[root])
            first = word.removesuffix(root).rstrip("s")
            # The first part is compared without linking letters (`ruckenlehnen` is `ruckenlehne`).
            stems = (first.removesuffix(link) for link in ("", "n", "s", "en", "es"))
            others.append(next((stem for stem in stems if stem in _KNOWN), first))
        else:
            others.append(word)
    if sides or len(words) > 3:
        return sides, others
    return [LETTERS[word] for word in others if word in LETTERS], [word for word in others if word not in LETTERS]


def _glued(words: list[str]) -> Label | None:
    """Return the label of joined attribute names: `overallheight-toptobottom`, `clearancefromfloortoundersideofbed`; or None."""
    match = _GLUED.fullmatch("".join(words)) if len(words[0]) > 8 else None
    if match is None or not (match[2] or match[1] == "clearance"):
        return None
    if match[1] == "clearance":
        return Label("side", "clearance")
    if match[1] in ("seat", "arm", "armrest"):
        return _of_seat_or_arm(match[1].removesuffix("rest"), match[2])
    return _OTHER if match[2] in ("from", "weight") else Label("side", match[2])


def _of_seat_or_arm(kind: str, side: str) -> Label:
    name = f"{kind}_{side}"
    return Label("side", name) if name in _SHORT.values() else _OTHER


def _clearance(kinds: set[str]) -> Label:
    return _OTHER if kinds & {"wall", "knee", "recline"} else Label("side", "clearance")


def _of_side(side: str, others: list[str]) -> Label:
    """Return the label of one side among other words."""
    kinds = set(others)
    if kinds & _NO_SIZE:
        return _OTHER
    if kinds & _FREE or (kinds & _UNDER and side == "height" and not kinds & _PARTS - _UNDER - {"free"}):
        return _clearance(kinds)
    # A single letter beside a word is a mark in a drawing: `A Overall height`.
    idle = NEUTRAL | _GAPS | _LOWER | _UPPER
    rest = [word for word in others if word not in idle and len(word) > 1]
    if kinds & SEAT or (kinds & ARM and side == "height"):
        kind, of_it = ("seat", SEAT) if kinds & SEAT else ("arm", ARM | {"rest"})
        strange = set(rest) - of_it - {"height", "adjustable"}
        return _OTHER if strange or kinds & _UPPER else _of_seat_or_arm(kind, side)
    if {"back", "front"} <= kinds:
        rest = [word for word in rest if word != "back"]
    including = kinds & {"including", "incl", "inc"}
    if any(map(_PACKED.match, rest)) or (not including and not (_PARTS | ARM).isdisjoint(rest)):
        return _OTHER
    if rest and not including:
        return Label("noun", side, " ".join(rest))
    return Label("largest" if kinds & _UPPER else "side", side)


@lru_cache(maxsize=16384)
def label_of(text: str) -> Label:
    """Return the meaning of a label (`SEAT HT`, `Frame, depth`, `Min. height`, `hauteur d'assise`)."""
    words = words_in(text)
    if not words:
        return NO_LABEL
    if len(words) == 1 and words[0] in _SHORT:
        return Label("side", _SHORT[words[0]])
    if glued := _glued(words):
        return glued
    sides, others = _parts_of(words)
    kinds = set(others)
    if len(set(sides)) == 1:
        return _of_side(sides[0], others)
    if not sides and _AT.search(text) and (kind := seat_or_arm(text)):
        return Label("side", f"{kind}_height")
    if not sides and kinds & _FREE:
        return _clearance(kinds)
    if kinds & (_NO_SIZE | _THICKNESS) or (sides and not kinds <= NEUTRAL | _GAPS):
        return _OTHER
    return NO_LABEL


@lru_cache(maxsize=4096)
def bound_of(text: str) -> str:
    """Return `largest` for words that only mark a maximum (`max.`, `up to`), `least` for a minimum (`min.`, `from`), else blank."""
    words = set(words_in(text))
    significant = words - NEUTRAL - _GAPS | words & {"from", "de", "von"}
    if significant and significant <= _UPPER | {"up"}:
        return "largest"
    return (
        "least" if significant and significant <= _LOWER | {"from", "ab", "de", "von", "da", "desde", "vanaf"} else ""
    )


def _stem(word: str) -> str:
    """Return the subject of a German or Dutch compound of sizes (`innen` of `Innenmaße`), or the word itself."""
    for ending in ("masse", "mass", "abmessungen", "abmessung", "afmetingen", "maten"):
        stem = word.removesuffix(ending)
        if stem != word and (known := {stem, stem.rstrip("s")} & (NEUTRAL | _PARTS | SEAT | ARM | {"stell", "liege"})):
            return {"stell": "total", "liege": "sleeping"}.get(min(known), min(known))
    return word


def seat_or_arm(name: str) -> str:
    """Return `seat` or `arm` for a name without other meaning (`Misure seduta`, `Sitzmaße`, `Armrest`), else blank."""
    significant = set(map(_stem, words_in(name))) - NEUTRAL - _GAPS
    if significant and significant <= SEAT:
        return "seat"
    return "arm" if significant and significant <= ARM | {"rest"} else ""


def only_parts(text: str) -> bool:
    """Return whether a name consists only of parts: `Frame`, `Drawer interior`."""
    return set(words_in(text)) <= _PARTS | _GAPS | NEUTRAL


def of_a_part(text: str) -> bool:
    """Return whether a name contains a part or a quantity other than a size."""
    return bool(set(words_in(text)) & (_PARTS | _NO_SIZE))


@lru_cache(maxsize=16384)
def name_role(text: str) -> str:
    """Return the role of a name before a size.

    It is `whole` (blank or general), `rest` (closed, upright), `pose` (reclined, extended), `inner` (inside or around the piece,
    the shade of a lamp), `part` (a part that may be sold separately) or `piece` (a thing of its own).
    """
    words = [_stem(word) for word in words_in(text) if word not in _GAPS]
    if any(map(_PACKED.match, words)):
        return "inner"
    significant = [word for word in words if word not in NEUTRAL]
    if not significant:
        return "whole"
    kinds = set(significant)
    if kinds & _STRONG_POSES or (
        kinds & _WEAK_POSES and (significant[-1] in _WEAK_POSES or kinds <= _WEAK_POSES | {"when", "position"})
    ):
        return "pose"
    if "up" in kinds and re.search(r"\bup to\W*$", text, re.I):
        return "pose"
    if kinds <= _REST | _LOWER | {"position", "when"}:
        return "rest"
    if kinds & _UPPER and kinds <= _UPPER | _LOWER:
        return "pose"
    if kinds & _INNER and (significant[-1] in _INNER or kinds <= _INNER | _SEQUENCE_PARTS):
        return "inner"
    return "part" if significant[-1] in _SEQUENCE_PARTS or significant[0] in _INNER else "piece"


_WITH_ABBREVIATED = re.compile(r"(?i)(?<![^\W_])w/")
(_SAID_OF_SIZE, _NO_BED, _BED, _RUG, _PILLOW, _FURNITURE, _BED_SIZES) = (
    expressions("labels")[name] for name in "said_of_size no_bed bed rug pillow furniture bed_sizes".split()
)


def piece_name(name: str, text: str) -> str:
    """Return the name of a piece without words that announce sizes, and with `w/` if `text` has it."""
    abbreviated = _WITH_ABBREVIATED.search(text)
    return _SAID_OF_SIZE.sub("", re.sub(r"\bwith\b", abbreviated[0], name) if abbreviated else name)


# Assignment of lengths to sides by letters, words or positions.


TRADE = "trade"
"""Order setting for figures without letters that accepts width x depth x height without a conflict."""
BED = "bed"
RUG = "rug"
PILLOW = "pillow"
_LONGEST = 500
_BOX = ("width", "depth", "height")
_ORDERED = {**LETTERS, "o": "diameter"}
"""Sides by the letters of a stated order; `o` is the sign of a diameter."""


def side_of(label: str) -> str | None:
    """Return the side that a label names, `length` included; None for parts and other things."""
    found = label_of(label)
    return found.side if found.role in ("side", "largest") else None


@lru_cache(maxsize=16384)
def kind_of(category: str, title: str) -> str:
    """Return `bed`, `rug`, `pillow` or blank: the kinds with other names of sides, by the category, else by the title."""
    category, title = category[:_LONGEST], title[:_LONGEST]
    leaf = re.split(r"[>|/]\s*+", category)[-1].rstrip()
    for text in (leaf, category, title):
        if _RUG.search(text):
            return RUG
        if _BED.search(text) and not _NO_BED.search(text):
            return BED
        if _PILLOW.search(text) and text is not title:
            return PILLOW
    return ""


@lru_cache(maxsize=4096)
def kind_of_part(name: str, kind: str) -> str:
    """Return the kind of a set's piece by its name; a name without a thing (`KING`) has the kind of the set."""
    if _BED_SIZES.fullmatch(name.strip()):
        return BED
    return kind_of(name, "") or ("" if kind == BED and _FURNITURE.search(name[:_LONGEST]) else kind)


Sided = tuple[Length, str | None]
"""A length and the side stated beside it, or None."""


def _lettered(items: Sequence[Sided], kind: str) -> tuple[dict[str, Length], list[Length]]:
    """Return the sides determined by letters, and the lengths whose letter is repeated.

    L is the width, or the depth if only the width is stated on a bed or rug, or the height beside width and depth.
    """
    sides = {side for _, side in items}
    runs_back = kind in (BED, RUG) and "width" in sides
    # With L and W but no D, L is the width and W the depth; on beds and rugs L is the depth and W the width.
    moved = {"length", "width"} <= sides and "depth" not in sides and not runs_back
    long_side = "depth" if runs_back and "depth" not in sides else "width"
    if {"width", "depth"} <= sides:
        long_side = "" if "height" in sides else "height"
    placed: dict[str, Length] = {}
    doubled: list[Length] = []
    for length, side in items:
        target = long_side if side == "length" else "depth" if side == "width" and moved else side
        if target in placed:
            doubled.append(length)
        elif target:
            placed[target] = length  # W, D and H take precedence; a length in addition to them is reported
    return placed, doubled


def _unlettered(items: Sequence[Sided], text: str, kind: str, order: str, *, is_usual: bool) -> Parsed[Dimensions]:
    """Return sides by position, in the stated order or that of the trade."""
    names: Sequence[str | None] = [_ORDERED.get(letter) for letter in order]
    if order and None not in names and len(names) == len(items):
        return place([(length, name) for (length, _), name in zip(items, names, strict=True)], text, kind)
    if len(items) not in (2, 3):
        return unreadable(text, "does not state which side it measures")
    names = ("width", "height") if kind == PILLOW and len(items) == 2 else _BOX[: len(items)]
    sides: Any = {name: length for name, (length, _) in zip(names, items, strict=True)}
    is_cube = len({length["hundredths_in"] for length, _ in items}) == 1
    if len(items) == 2 or is_cube or (is_usual and order == TRADE):
        return Parsed(sides)
    return Parsed(sides, (conflict(text, f"does not name its sides; read as {' x '.join(_BOX)}"),))


def place(
    items: Sequence[Sided], text: str, kind: str = "", order: str = "", is_usual: bool = True
) -> Parsed[Dimensions]:
    """Assign a sequence of lengths to sides. A repeated letter, or a length without a side, is a conflict.

    Args:
        items: The lengths, with the sides stated beside them.
        text: The cell, for problems.
        kind: The kind of the piece (`kind_of`).
        order: A stated order of letters (`bht`), or `TRADE`.
        is_usual: Whether lengths without letters are in the usual form of the trade.
    """
    if all(side is None for _, side in items):
        return _unlettered(items, text, kind, order, is_usual=is_usual)
    placed, doubled = _lettered(items, kind)
    unplaced = doubled + [length for length, side in items if side is None]
    covered = ("width", "depth") if "diameter" in placed else ()
    free = [side for side in _BOX if side not in placed and side not in covered]
    named = [at for at, (_, side) in enumerate(items) if side is not None]
    faults: list[Fault] = []
    if {"length", "width", "depth"} <= {side for _, side in items}:
        faults.append(conflict(text, "states a length in addition to width and depth"))
    if doubled:
        faults.append(conflict(text, "states one side twice"))
    if not doubled and len(items) == 3 and len(named) == 1 and list(placed) == [_BOX[named[0]]]:
        # `265 x 158 x H 84`: the other sides are in the order of the trade around the named side.
        placed.update(zip(free, unplaced, strict=True))
        if named[0] != 2:
            faults.append(conflict(text, f"names only one side; read as {' x '.join(_BOX)}"))
    elif len(free) == len(unplaced) == 1:
        placed[free[0]] = unplaced[0]
    elif len(items) == 2 and named == [1] and set(placed) == {"height"}:
        placed["width"] = unplaced[0]
        faults.append(conflict(text, "names only one side; read as width x height"))
    elif unplaced and not doubled:
        faults.append(conflict(text, "has a length without a side"))
    sides: Any = placed
    return Parsed(sides, tuple(faults))
