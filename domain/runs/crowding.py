"""Rows beyond those that are read for one product (domain/kernel/bounds.py), known while they are put aside."""

from typing import Final

from domain.kernel.bounds import ROWS, SHEET_ROW_BYTES
from domain.kernel.problems import Problem, ProblemKind

_MOST_KEYS: Final = 50_000
"""Keys that are counted at a time; a bucket that few keys fill needs few."""


Rows = tuple[int, int, str | None]
"""How many rows, and line and sheet of the first."""


def weight_of(line: bytes) -> int:
    """As how many rows a row counts: one for each SHEET_ROW_BYTES begun."""
    return 1 + len(line) // SHEET_ROW_BYTES


class Crowding:
    """Counts the rows of each key in buckets that hold more than one product may have; in others nothing needs counting."""

    def __init__(self) -> None:
        self._weights: dict[str, int] = {}
        self._left_out: dict[str, Rows] = {}
        self._thinned: dict[str, Rows] = {}

    def refuses(self, key: str, weight: int) -> bool:
        """Whether one more row of the key, in such a bucket, is too much."""
        before = self._weights.get(key)
        if before is None and len(self._weights) >= _MOST_KEYS:
            return False
        self._weights[key] = (before or 0) + weight
        return self._weights[key] > ROWS

    def leave_out(self, key: str, line: int, sheet: str | None) -> None:
        """The row on that line was left out."""
        count, first, named = self._left_out.get(key, (0, line, sheet))
        self._left_out[key] = (count + 1, first, named)

    def thinned(self, key: str, rows: Rows) -> None:
        """These were put aside, and are left out of what is read; said again whenever they are gathered."""
        self._thinned[key] = rows

    def problems(self, key: str) -> list[Problem]:
        """What is told of the key: nothing, or how many of its rows were left out, and where they begin."""
        found = [rows[key] for rows in (self._thinned, self._left_out) if key in rows]
        if not found:
            return []
        count, (_, line, sheet) = sum(rows[0] for rows in found), found[0]
        detail = (
            f"Too much for one product: {count:,} rows of {key} were left out; at most {ROWS:,} are read, "
            f"or {ROWS * SHEET_ROW_BYTES >> 20} MiB."
        )
        return [Problem("rows", ProblemKind.TOO_LONG, detail, line, None, sheet)]
