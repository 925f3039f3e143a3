"""Detection of a table's header row, even if rows with titles, groups of columns, units or descriptions surround it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MAX_SEARCHED_ROWS = 15
MAX_SCORED_CELLS = 2_000
"""Maximum number of cells of a row that are compared with words of known headers."""
MergedArea = tuple[int, int, int, int]
"""Merged area: first row, first column, last row and last column."""

_NUMBER = re.compile(r"[-+(]?[$€£]?\s*\d[\d.,\s]*[%)]?")
_UNITS = {
    "in", "in.", "inch", "inches", '"', "ft", "ft.", "feet", "mm", "cm", "m",
    "lb", "lb.", "lbs", "lbs.", "pound", "pounds", "oz", "oz.", "g", "kg", "kgs", "centimeters", "millimeters",
    "usd", "cad", "eur", "gbp", "mxn", "aed", "sar", "aud", "chf", "sek", "dkk", "nok", "pln",
    "days", "weeks", "tage", "wochen", "dni", "tyg", "tyg.", "jours", "semaines", "giorni",
    "settimane", "días", "dias", "semanas", "dagen", "weken", "dage", "uger", "dagar", "veckor",
}  # fmt: skip
_UNIT_LIKE_TEXTS = {
    "$", "€", "£", "%", "#", "-", "n/a", "ea", "ea.", "each", "pc", "pcs", "qty", "unit", "units",
    "cuft", "cu ft", "cu. ft.", "cbm", "m3", "m³", "l", "text", "number", "y/n", "yes/no", "stk", "stück", "st",
    "string", "integer", "decimal", "numeric", "boolean", "date", "url", "required", "optional", "mandatory",
    "szt", "szt.", "pz", "pz.", "uds", "uds.", "stuks", "stk.", "st.", "kpl", "m²", "m2",
    "recommended", "conditional", "pflicht", "pflichtfeld", "obligatoire", "obligatorio", "alphanumeric", "free text",
}  # fmt: skip
_DATE_FORMAT = re.compile(r"[dmyhs]{1,4}(?:[-./: ][dmyhs]{1,4}){1,5}")
_MAX_GROUP_CHARS = 25
_MAX_NAME_CHARS = 60
_NARROW_WIDTH = 3
_MIN_GROUPS = 2
_MIN_TITLED_COLUMNS = 4
_MAX_GROUP_ROWS = 2
_MIN_FILL = 0.9
_MAX_OTHER_ROWS = 4
_KNOWN_SHARE = 0.6
_COMPARED_ROWS = 10
_NUMERIC_SHARE = 0.6
_MIN_NUMERIC_COLUMNS = 2
_MAX_NUMERIC_DESCRIPTIONS = 0.25
_MIN_DIGIT_SHARE = 0.2
_EXAMINED_CHARS = 100


@dataclass(frozen=True, slots=True)
class HeaderLayout:
    """Headers of a table and position of its data, as indexes in the rows that were passed to `find_header`.

    Attributes:
        headers: Names of the columns, such as `Column 7` for a column without a name.
        names: Names of the columns as in the header, with empty texts for columns without a name.
        header_row: Index of the first row of the header.
        first_data_row: Index of the first row of data.
        known_words: Number of words of known headers in the header row.
        other_rows: Rows below the header that are no data: index and role, such as `other names of the columns`.
    """

    headers: tuple[str, ...]
    names: tuple[str, ...]
    header_row: int
    first_data_row: int
    known_words: int
    other_rows: tuple[tuple[int, str], ...] = ()


def find_header(
    rows: Sequence[Sequence[str]],
    count_known_words: Callable[[Sequence[str]], int],
    merged_areas: Sequence[MergedArea] = (),
) -> HeaderLayout | None:
    """Find the header row of a table; return None if all rows are blank.

    Among the first 15 rows that are not blank, the header is the row with the most known words, then the fullest row
    without numbers, then the first row. If an earlier row contains known headers above data, it is the header, and the
    table of the later one is below. Up to three header rows are joined (`Dimensions` over `Width` gives `Dimensions
    Width`). Units in the following row become part of the names (`Width (in)`), and rows of descriptions or of other names
    are no data. Blank names become `Column 7`; names may occur twice.

    Args:
        rows: The first rows of the table.
        count_known_words: Function that counts the words of known headers in cells.
        merged_areas: Merged areas, as indexes in the rows.
    """
    table = [[cell.strip() for cell in row] for row in rows]
    chosen = _choose_header(table, count_known_words)
    if chosen is None:
        return None
    at, known = chosen
    names, first, after = _build_names(table, at, merged_areas)
    other_rows: list[tuple[int, str]] = []
    while after < len(table) and len(other_rows) < _MAX_OTHER_ROWS:
        if _is_unit_row(table[after]):
            names = _append_units(names, table[after])
            other_rows.append((after, "the units of the columns"))
        elif _repeats_names(table[after], table[after + 1 :], known, count_known_words):
            other_rows.append((after, "other names of the columns"))
        elif _describes_columns(table[after], table[after + 1 :]):
            other_rows.append((after, "descriptions of the columns"))
        else:
            break
        after += 1
    headers = _complete_names(names, table[after:])
    padded = (*names, *[""] * (len(headers) - len(names)))
    return HeaderLayout(headers, padded[: len(headers)], first, after, known, tuple(other_rows))


def is_number(text: str) -> bool:
    """Return whether a text is a number or an amount, such as `1,299.00` or `$5`."""
    return _NUMBER.fullmatch(text.strip()) is not None


def is_numeric(cell: str) -> bool:
    """Return whether a cell is similar to a number, a size or a code: at least a fifth of its characters are digits."""
    text = cell.strip()[:_EXAMINED_CHARS]
    return bool(text) and sum(map(str.isdecimal, text)) >= _MIN_DIGIT_SHARE * len(text)


def count_numeric_cells(rows: Sequence[Sequence[str]], column: int) -> int:
    """Return the number of rows whose cell in a column is numeric."""
    return sum(column < len(row) and is_numeric(row[column]) for row in rows)


def _choose_header(table: list[list[str]], count_known_words: Callable[[Sequence[str]], int]) -> tuple[int, int] | None:
    """Return the index of the header row, and its number of known words; None if all rows are blank.

    The score of a row consists of its known words and of its number of filled cells, relative to the median of all rows.
    Cells that are long or numeric reduce the score.
    """
    # One known word in a wide row counts little, because data may contain known words.
    counts = [sum(map(bool, row)) for row in table]
    filled = sorted(filter(None, counts))
    best: tuple[float, int, int] | None = None
    earlier: tuple[int, int] | None = None
    for at in [at for at, count in enumerate(counts) if count][:MAX_SEARCHED_ROWS]:
        row, count = table[at], counts[at]
        known = count_known_words(row[:MAX_SCORED_CELLS])
        plain = sum(1 for cell in row if cell and len(cell) <= _MAX_NAME_CHARS and not _NUMBER.fullmatch(cell))
        points = known if known > 1 or count <= _NARROW_WIDTH else known * 0.2
        points = (points + min(count / filled[len(filled) // 2], 1.0)) * (plain / count) ** 2
        if best is None or points > best[0] + 1e-9:
            if best is not None and earlier is None and best[2] > 1 and _has_data(table, best[1], at):
                earlier = best[1:]
            best = (points, at, known)
    return earlier or (best and best[1:])


def _has_data(table: list[list[str]], header_row: int, end: int) -> bool:
    """Return whether the row below a possible header is data: numbers below names without a number."""
    below = table[header_row + 1 : end]
    names = [column for column, name in enumerate(table[header_row]) if name and not is_numeric(name)]
    return any(sum(count_numeric_cells([row], column) for column in names) >= max(len(names) / 4, 1) for row in below)


def _build_names(table: list[list[str]], at: int, merged_areas: Sequence[MergedArea]) -> tuple[list[str], int, int]:
    """Return the names of the columns, the index of the first row of the header, and the index after its last row."""
    tall_areas = [
        area for area in merged_areas if area[0] <= at <= area[2] and 0 < area[2] - area[0] <= _MAX_GROUP_ROWS
    ]
    if tall_areas:
        first, last = min(area[0] for area in tall_areas), max(area[2] for area in tall_areas)
        return _join_merged_rows(table, range(first, last + 1), merged_areas), first, last + 1
    names, first, after = list(table[at]), at, at + 1
    while (
        first > 0 and at - first < _MAX_GROUP_ROWS and _is_group_row(table[first - 1], names, first - 1, merged_areas)
    ):
        names = _join_header_rows(table[first - 1], names, first - 1, merged_areas)
        first -= 1
    if first < at:
        return names, first, after
    if after < len(table) and _is_group_row(table[at], table[after], at, merged_areas):
        return _join_header_rows(table[at], table[after], at, merged_areas), at, after + 1
    return names, first, after


def _join_merged_rows(table: list[list[str]], rows: range, merged_areas: Sequence[MergedArea]) -> list[str]:
    """Return the names of the columns of a header whose height is known from cells that are merged over its rows."""
    block = [list(table[row]) for row in rows if row < len(table)]
    width = max(map(len, block))
    for row in block:
        row.extend([""] * (width - len(row)))
    for first, left, _, right in merged_areas:
        is_within = first in rows and first - rows.start < len(block) and left < width
        if is_within and right - left + 1 < _MIN_FILL * width:
            cells = block[first - rows.start]
            cells[left : right + 1] = [cells[left]] * (min(right, width - 1) - left + 1)
    return [" ".join(filter(None, dict.fromkeys(parts))) for parts in zip(*block, strict=True)]


def _repeats_names(
    row: list[str], data: list[list[str]], known: int, count_known_words: Callable[[Sequence[str]], int]
) -> bool:
    """Return whether the row below the header contains the headers again, such as their technical names.

    Most of its cells are then known headers without digits, about as many as in the header.
    """
    filled = [cell for cell in row if cell]
    if known < _MIN_GROUPS or len(filled) < _MIN_GROUPS or any(len(cell) > _MAX_NAME_CHARS for cell in filled):
        return False
    words = 0 if any(map(_NUMBER.fullmatch, filled)) else count_known_words(row[:MAX_SCORED_CELLS])
    are_technical = sum("_" in cell for cell in filled) * 2 > len(filled)
    is_known = words > _MIN_GROUPS and words >= _KNOWN_SHARE * max(len(filled), known)
    return is_known and (are_technical or _lacks_numbers(row, data))


def _describes_columns(row: list[str], data: list[list[str]]) -> bool:
    """Return whether a row below the header describes the columns: texts where the following rows have numbers.

    Few of the descriptions can contain a number (`12 digits`).
    """
    return any(" " in cell for cell in row) and _lacks_numbers(row, data, _MAX_NUMERIC_DESCRIPTIONS)


def _lacks_numbers(row: list[str], data: list[list[str]], max_share: float = 0.0) -> bool:
    """Return whether a row has texts instead of numbers in numeric columns of the following rows, at least in two.

    Args:
        row: The row.
        data: The following rows.
        max_share: The maximum share of numeric columns in which the row has numbers as well.
    """
    examined = data[:_COMPARED_ROWS]
    if not examined:
        return False
    numeric = [
        column
        for column, cell in enumerate(row)
        if cell and count_numeric_cells(examined, column) >= _NUMERIC_SHARE * len(examined)
    ]
    count = sum(is_numeric(row[column]) for column in numeric)
    return len(numeric) - count >= _MIN_NUMERIC_COLUMNS and count <= max_share * len(numeric)


def _is_group_row(upper: list[str], lower: list[str], at: int, merged_areas: Sequence[MergedArea]) -> bool:
    """Return whether the row `upper` at index `at` has group names (`Dimensions`) above names in `lower` (`Width`)."""
    if not any(lower) or any(_NUMBER.fullmatch(cell) or len(cell) > _MAX_NAME_CHARS for cell in lower):
        return False
    width = max(len(upper), len(lower))
    wide_areas = [area for area in merged_areas if area[0] <= at <= area[2] and area[3] > area[1]]
    if not wide_areas:
        return _is_group_row_without_areas(upper, lower)
    over = [area for area in wide_areas if area[2] == at and area[3] - area[1] + 1 < _MIN_FILL * width]
    if all(_covers_whole_table(area, lower) for area in over):
        return False
    return any(any(lower[left : right + 1]) for _, left, _, right in over) and not _overlaps_outside_areas(
        upper, lower, wide_areas
    )


def _covers_whole_table(area: MergedArea, lower: list[str]) -> bool:
    """Return whether an area covers all names between two blank columns, as the title of one of several tables does."""
    _, left, _, right = area
    width = sum(map(bool, lower[left : right + 1]))
    before, after = lower[:left][-1:], lower[right + 1 : right + 2]
    return width >= _MIN_TITLED_COLUMNS and not any(before) and not any(after)


def _overlaps_outside_areas(upper: list[str], lower: list[str], merged_areas: Sequence[MergedArea]) -> bool:
    """Return whether a column outside the merged areas has a value in both rows, which means that `lower` is data."""
    grouped = {column for area in merged_areas for column in range(area[1], area[3] + 1)}
    pairs = enumerate(zip(upper, lower, strict=False))
    return any(up and down and column not in grouped for column, (up, down) in pairs)


def _is_group_row_without_areas(upper: list[str], lower: list[str]) -> bool:
    """Return whether `upper` has group names: short texts above names, each before a blank cell that is not merged."""
    groups = [at for at, cell in enumerate(upper) if cell and at < len(lower) and lower[at]]
    has_ungrouped = any(up and not down for up, down in zip(upper, lower, strict=False))
    if len(groups) < _MIN_GROUPS and not (groups and has_ungrouped):
        return False
    if any(len(upper[at]) > _MAX_GROUP_CHARS or any(map(str.isdigit, upper[at])) for at in groups):
        return False
    if upper[0] and lower[0]:
        return False
    return all(at + 1 < len(upper) and not upper[at + 1] and at + 1 < len(lower) and lower[at + 1] for at in groups)


def _join_header_rows(upper: list[str], lower: list[str], at: int, merged_areas: Sequence[MergedArea]) -> list[str]:
    width = max(len(upper), len(lower))
    upper = upper + [""] * (width - len(upper))
    lower = lower + [""] * (width - len(lower))
    groups = _spread_groups(upper, lower, [area for area in merged_areas if area[0] <= at <= area[2]])
    return [" ".join(filter(None, (group, name))) for group, name in zip(groups, lower, strict=True)]


def _spread_groups(upper: list[str], lower: list[str], merged_areas: Sequence[MergedArea]) -> list[str]:
    """Return the group name of each column, from its merged area or, without any, from a column to the left."""
    groups = list(upper)
    if merged_areas:
        for _, first, _, last in merged_areas:
            groups[first : last + 1] = [upper[first]] * (min(last, len(upper) - 1) - first + 1)
        return groups
    current = ""
    for column, cell in enumerate(upper):
        if cell:
            current = cell if lower[column] else ""
        elif lower[column]:
            groups[column] = current
    return groups


def _is_unit_row(row: list[str]) -> bool:
    cells = [cell.strip("()[] ").lower() or "-" for cell in row if cell]
    return (
        bool(cells)
        and all(cell in _UNITS or cell in _UNIT_LIKE_TEXTS or _DATE_FORMAT.fullmatch(cell) for cell in cells)
        and not all(c == "-" for c in cells)
    )


def _append_units(names: list[str], units: list[str]) -> list[str]:
    suffixes = [unit.strip("()[] ") for unit in units] + [""] * len(names)
    return [
        f"{name} ({unit})"
        if name and unit.lower() in _UNITS and unit.lower() not in re.split(r"[^a-z.]+", name.lower())
        else name
        for name, unit in zip(names, suffixes, strict=False)
    ]


def _complete_names(names: list[str], data: list[list[str]]) -> tuple[str, ...]:
    """Return the names of all columns, with names such as `Column 7` for blank ones, and without empty last columns."""
    widths = sorted(max((at + 1 for at, cell in enumerate(row) if cell), default=0) for row in data)
    usual = widths[(len(widths) - 1) // 2] if widths else 0
    named = max((at + 1 for at, name in enumerate(names) if name), default=0)
    width = max(named, usual)
    padded = names[:width] + [""] * (width - len(names))
    return tuple(name.lstrip("\ufeff") or f"Column {at}" for at, name in enumerate(padded, start=1))
