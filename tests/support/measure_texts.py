"""Generated texts of measures with their meaning, and a check that every number of a text is explained."""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from domain.ingestion.values.dimensions import ParsedSize

INCHES = {
    "in": Fraction(1),
    "ft": Fraction(12),
    "cm": Fraction(50, 127),
    "mm": Fraction(5, 127),
    "m": Fraction(5000, 127),
}
UNITS = {
    "in": (
        '"',
        "''",
        "″",
        "”",
        '" ',
        " in",
        " in.",
        "in",
        " inches",
        " inch",
        " Zoll",
        " pouces",
        " pulgadas",
        " pollici",
        " duim",
    ),
    "cm": ("cm", " cm", " CM", " cm.", " centimeters", " centímetros"),
    "mm": ("mm", " mm", " MM", " millimeters"),
}
SIDES = ("width", "depth", "height")
LETTERS = (("W", "D", "H"), ("w", "d", "h"), ("B", "T", "H"))
WORDS = (
    ("Width", "Depth", "Height"),
    ("WIDTH", "DEPTH", "HEIGHT"),
    ("Overall Width", "Overall Depth", "Overall Height"),
    ("Breite", "Tiefe", "Höhe"),
    ("Gesamtbreite", "Gesamttiefe", "Gesamthöhe"),
    ("largeur", "profondeur", "hauteur"),
    ("Breedte", "Diepte", "Hoogte"),
    ("Ancho", "Fondo", "Alto"),
    ("Ancho", "Profundidad", "Altura"),
    ("larghezza", "profondità", "altezza"),
    ("Bredd", "Djup", "Höjd"),
    ("Szerokość", "Głębokość", "Wysokość"),
    ("Ширина", "Глубина", "Высота"),
)
SEATS = (
    "Seat height",
    "SEAT HT",
    "Sitzhöhe",
    "hauteur d'assise",
    "zithoogte",
    "altura del asiento",
    "altezza seduta",
    "Seat H",
)
NOT_THE_PIECE = (
    "Seat width", "Max. load", "Mattress thickness", "Bed height", "Drawer interior width", "Cable length", "Shelf depth", "Chaise length",
)  # fmt: skip
PIECES = (
    "TABLE",
    "Chair",
    "SOFA",
    "Loveseat",
    "Ottoman",
    "Coffee Table",
    "SIDE CHAIR",
    "Bench",
    "Nightstand",
    "Dresser",
)
JOINS = (" x ", " X ", "x", "X", " × ", " * ", "  x  ")


@dataclass(frozen=True)
class Figure:
    """A number as text and its value."""

    text: str
    value: Fraction


def hundredths(value: Fraction, unit: str) -> int:
    exact = value * INCHES[unit] * 100
    return int(exact + Fraction(1, 2))


def misspell(word: str, at: int, kind: int) -> str:
    """Return `word` with one typing error: two letters swapped, one omitted or one doubled."""
    at = 1 + at % (len(word) - 2)
    if kind == 0 and word[at] != word[at + 1]:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + word[at + 1 :] if kind == 1 and len(word) > 5 else word[:at] + word[at] + word[at:]


@st.composite
def figures(draw: st.DrawFn, unit: str) -> Figure:
    if unit == "mm":
        whole = draw(st.integers(100, 2999))
        return Figure(str(whole), Fraction(whole))
    whole = draw(st.integers(5, 240))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return Figure(str(whole), Fraction(whole))
    if unit == "in" and kind == 1:
        over, under, sign = draw(st.sampled_from([(1, 2, "½"), (1, 4, "¼"), (3, 4, "¾"), (5, 8, "⅝"), (3, 16, "")]))
        joint = draw(st.sampled_from([" ", "-", " - "]))
        text = f"{whole}{sign}" if sign and draw(st.booleans()) else f"{whole}{joint}{over}/{under}"
        return Figure(text, whole + Fraction(over, under))
    tenths = draw(st.integers(1, 99))
    mark = "," if unit == "cm" and kind == 1 else "."
    return Figure(f"{whole}{mark}{tenths:02d}", whole + Fraction(tenths, 100))


@dataclass(frozen=True)
class SizeText:
    """A text, its sides in hundredths of an inch, and the unit that a column would have to add."""

    text: str
    sides: dict[str, int]
    unit: str


def _after(parts: list[tuple[str, str]], join: str) -> str:
    return join.join(f"{figure}{axis}" for figure, axis in parts)


@st.composite
def size_texts(draw: st.DrawFn, unit: str | None = None, figure: Any = None) -> SizeText:
    """Generate a size of three sides with axes before, after or attached, as words, or as one stated order."""
    unit = unit or draw(st.sampled_from(["in", "cm", "mm"]))
    numbers = [draw(figures(unit) if figure is None else figure) for _ in SIDES]
    mark = draw(st.sampled_from(UNITS[unit]))
    order = draw(st.permutations(range(3)))
    sides = {SIDES[at]: hundredths(numbers[at].value, unit) for at in order}
    style = draw(
        st.sampled_from(["behind", "glued", "before", "words", "words before", "labels", "stated", "misspelt"])
    )
    letters = draw(st.sampled_from(LETTERS))
    words = draw(st.sampled_from(WORDS))
    join = draw(st.sampled_from(JOINS))
    marked = [f"{number.text}{mark}" for number in numbers]
    if style == "behind":
        text = _after(
            [(marked[at], f" {letters[at]}") for at in order], draw(st.sampled_from([" x ", " X ", ", ", "; ", " "]))
        )
    elif style == "glued":
        spaced = '"' if unit == "in" else unit
        text = _after([(f"{numbers[at].text}{spaced}", letters[at]) for at in order], join)
    elif style == "before":
        pad = draw(st.sampled_from(["", " ", ": ", ". "]))
        text = draw(st.sampled_from([" x ", ", ", " "])).join(f"{letters[at]}{pad}{marked[at]}" for at in order)
    elif style == "words":
        text = _after([(marked[at], f" {words[at]}") for at in order], draw(st.sampled_from([" x ", ", ", " X "])))
    elif style == "words before":
        text = draw(st.sampled_from([" x ", ", ", "; ", " ", "\n"])).join(f"{words[at]} {marked[at]}" for at in order)
    elif style == "labels":
        pad = draw(st.sampled_from([":", ": ", " : ", "=", " = "]))
        text = draw(st.sampled_from([", ", "; ", " ", " | ", "\n"])).join(
            f"{words[at]}{pad}{marked[at]}" for at in order
        )
    elif style == "stated":
        by = draw(st.sampled_from(["x", " x ", "X", "/"]))
        heading = by.join(letters[at] for at in order)
        run = join.join(numbers[at].text for at in order) + mark
        text = draw(st.sampled_from([f"{heading}: {run}", f"({heading}) {run}", f"{run} ({heading})"]))
    else:
        slips = [
            misspell(word, draw(st.integers(0, 9)), draw(st.integers(0, 2))) for word in ("Width", "Depth", "Height")
        ]
        text = ", ".join(f"{slips[at]}: {marked[at]}" for at in order)
    return SizeText(text, sides, unit)


@st.composite
def corrupted_size_texts(draw: st.DrawFn) -> SizeText:
    """Generate a size with up to three changed characters or a missing end; whole numbers only."""
    found = draw(size_texts("in", st.integers(11, 99).map(lambda n: Figure(str(n), Fraction(n)))))
    text = found.text
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(text) - 1)))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            text = text[:at] + text[at + 1 :]
        elif kind == 1:
            text = text[:at] + text[at : at + 1] + text[at:]
        elif kind == 2:
            text = text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]
        elif kind == 3:
            text = text[:at] + draw(st.sampled_from(list("xWDHLab\"' ,;:/.()"))) + text[at:]
        else:
            text = text[: max(at, 3)]
    return SizeText(text, found.sides, "in")


_RUN = re.compile(r"\d+")
_FEET = re.compile(r"\d+\s*['’′](?!['’′])\s*-?\s*\d+")


def find_unexplained_figures(text: str, spread: ParsedSize) -> list[str]:
    """Return the numbers of a text that its parsed measures do not explain.

    Zeros are ignored. Explained are digits of given values, of discarded values, of names and counts, and the upper end of a range.
    """
    texts = [*spread.extras]
    pieces: list[Any] = [{"dimensions": spread.dimensions}, *spread.components]
    for piece in pieces:
        texts += [str(piece.get("name", "")), str(piece.get("quantity", ""))]
        for length in piece["dimensions"].values():
            texts += [str(length["given"]["value"]), str(length["given"]["value"].normalize().as_tuple().digits)]
    known = {run for given in texts for run in _RUN.findall(given)}
    known |= {str(Decimal(run)) for run in known}
    # Feet and inches become one figure.
    return [
        run
        for run in _RUN.findall(_FEET.sub("", text))
        if int(run) and run not in known and str(Decimal(run)) not in known
    ]
