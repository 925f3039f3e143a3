"""Header detection among title, group and unit rows, for text tables and worksheets."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SEARCHED = 15
SCORED = 2_000
"""Number of a row's cells that are compared with known header words."""
Span = tuple[int, int, int, int]
"""A merged area: first row, first column, last row, last column, counted from 0 within the rows looked at."""

_NUMBER = re.compile(r"[-+(]?[$€£]?\s*\d[\d.,\s]*[%)]?")
_UNITS = {
    "in", "in.", "inch", "inches", '"', "ft", "ft.", "feet", "mm", "cm", "m",
    "lb", "lb.", "lbs", "lbs.", "oz", "oz.", "g", "kg", "kgs",
    "usd", "cad", "eur", "gbp", "mxn", "aed", "sar", "aud",
}  # fmt: skip
_COUNTS = {
    "$", "€", "£", "%", "#", "-", "n/a", "ea", "ea.", "each", "pc", "pcs", "qty", "unit", "units", "days", "weeks",
    "cuft", "cu ft", "cu. ft.", "cbm", "text", "number", "y/n", "yes/no",
}  # fmt: skip
_LONGEST_GROUP = 25
_LONGEST_NAME = 60
_NARROW = 3
_FEWEST_GROUPS = 2
_NEARLY_ALL = 0.9


@dataclass(frozen=True, slots=True)
class Plan:
    """Layout of a table. `first` is the index of the first row of data, `known` the number of known header words."""

    headers: tuple[str, ...]
    first: int
    known: int


def plan(
    rows: Sequence[Sequence[str]], score: Callable[[Sequence[str]], int], spans: Sequence[Span] = ()
) -> Plan | None:
    """Find the header of a table in its first rows; return None if all rows are blank.

    The header is chosen among the first 15 rows that are not blank: the most known words decide, then the fullest row
    without numbers, then the first. Two header rows are joined (`Dimensions` over `Width` gives `Dimensions Width`), a
    following row of units becomes part of the names (`Width (in)`). Blank names become `Column 7`; duplicate names
    stay.
    """
    table = [[cell.strip() for cell in row] for row in rows]
    chosen = _choose(table, score)
    if chosen is None:
        return None
    at, known = chosen
    names, after = _names(table, at, spans)
    if after < len(table) and _is_units(table[after]):
        names = _with_units(names, table[after])
        after += 1
    return Plan(_finished(names, table[after:]), after, known)


def _choose(table: list[list[str]], score: Callable[[Sequence[str]], int]) -> tuple[int, int] | None:
    """Return the header's index and its number of known words.

    A row's score is its known words (a single one in a wide row counts little, as data may contain such words) and its
    fill relative to the median, reduced by cells that do not look like names, which are short and not numeric.
    """
    counts = [sum(map(bool, row)) for row in table]
    filled = sorted(filter(None, counts))
    best: tuple[float, int, int] | None = None
    for at in [at for at, count in enumerate(counts) if count][:SEARCHED]:
        row, count = table[at], counts[at]
        known = score(row[:SCORED])
        plain = sum(1 for cell in row if cell and len(cell) <= _LONGEST_NAME and not _NUMBER.fullmatch(cell))
        points = known if known > 1 or count <= _NARROW else known * 0.2
        points = (points + min(count / filled[len(filled) // 2], 1.0)) * (plain / count) ** 2
        if best is None or points > best[0] + 1e-9:
            best = (points, at, known)
    return best and best[1:]


def _names(table: list[list[str]], at: int, spans: Sequence[Span]) -> tuple[list[str], int]:
    if at > 0 and _is_group(table[at - 1], table[at], at - 1, spans):
        return _joined(table[at - 1], table[at], at - 1, spans), at + 1
    below = at + 1
    if below < len(table) and _is_group(table[at], table[below], at, spans):
        return _joined(table[at], table[below], at, spans), below + 1
    return list(table[at]), at + 1


def _is_group(upper: list[str], lower: list[str], at: int, spans: Sequence[Span]) -> bool:
    """Return whether `upper` holds groups over the names in `lower`, in which no cell may look like data."""
    if not any(lower) or any(_NUMBER.fullmatch(cell) or len(cell) > _LONGEST_NAME for cell in lower):
        return False
    width = max(len(upper), len(lower))
    merged = [span for span in spans if span[0] <= at <= span[2] and span[3] > span[1]]
    if not merged:
        return _is_bare_group(upper, lower)
    over = [span for span in merged if span[2] == at and span[3] - span[1] + 1 < _NEARLY_ALL * width]
    return any(any(lower[left : right + 1]) for _, left, _, right in over) and not _meets(upper, lower, merged)


def _meets(upper: list[str], lower: list[str], spans: Sequence[Span]) -> bool:
    """Return whether a column outside the merged areas is filled in both rows; then `lower` is data."""
    grouped = {column for span in spans for column in range(span[1], span[3] + 1)}
    pairs = enumerate(zip(upper, lower, strict=False))
    return any(up and down and column not in grouped for column, (up, down) in pairs)


def _is_bare_group(upper: list[str], lower: list[str]) -> bool:
    """Return whether there are at least two short groups, each followed by blanks to cover, without merged areas."""
    groups = [at for at, cell in enumerate(upper) if cell and at < len(lower) and lower[at]]
    has_ungrouped = any(up and not down for up, down in zip(upper, lower, strict=False))
    if len(groups) < _FEWEST_GROUPS and not (groups and has_ungrouped):
        return False
    if any(len(upper[at]) > _LONGEST_GROUP or any(map(str.isdigit, upper[at])) for at in groups):
        return False
    if upper[0] and lower[0]:
        return False
    return all(at + 1 < len(upper) and not upper[at + 1] and at + 1 < len(lower) and lower[at + 1] for at in groups)


def _joined(upper: list[str], lower: list[str], at: int, spans: Sequence[Span]) -> list[str]:
    width = max(len(upper), len(lower))
    upper = upper + [""] * (width - len(upper))
    lower = lower + [""] * (width - len(lower))
    groups = _spread(upper, lower, [span for span in spans if span[0] <= at <= span[2]])
    return [" ".join(filter(None, (group, name))) for group, name in zip(groups, lower, strict=True)]


def _spread(upper: list[str], lower: list[str], merged: Sequence[Span]) -> list[str]:
    """Return each column's group: that of its merged area, or without merged areas the last one that covers a name."""
    groups = list(upper)
    if merged:
        for _, first, _, last in merged:
            groups[first : last + 1] = [upper[first]] * (min(last, len(upper) - 1) - first + 1)
        return groups
    current = ""
    for column, cell in enumerate(upper):
        if cell:
            current = cell if lower[column] else ""
        elif lower[column]:
            groups[column] = current
    return groups


def _is_units(row: list[str]) -> bool:
    cells = [cell.strip("()[] ").lower() or "-" for cell in row if cell]
    return bool(cells) and all(cell in _UNITS or cell in _COUNTS for cell in cells) and not all(c == "-" for c in cells)


def _with_units(names: list[str], units: list[str]) -> list[str]:
    suffixes = [unit.strip("()[] ") for unit in units] + [""] * len(names)
    return [
        f"{name} ({unit})"
        if name and unit.lower() in _UNITS and unit.lower() not in re.split(r"[^a-z.]+", name.lower())
        else name
        for name, unit in zip(names, suffixes, strict=False)
    ]


def _finished(names: list[str], data: list[list[str]]) -> tuple[str, ...]:
    """Name all columns, without those at the end that have neither name nor data."""
    widths = sorted(max((at + 1 for at, cell in enumerate(row) if cell), default=0) for row in data)
    usual = widths[(len(widths) - 1) // 2] if widths else 0
    named = max((at + 1 for at, name in enumerate(names) if name), default=0)
    width = max(named, usual)
    padded = names[:width] + [""] * (width - len(names))
    return tuple(name.lstrip("\ufeff") or f"Column {at}" for at, name in enumerate(padded, start=1))
