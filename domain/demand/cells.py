"""Rule for the release of cells (ADR 107): at least five organisations, without one that dominates the others.

Cells of a vendor are disjoint, and never change after their release. Every statistic is a sum of released cells, so each
combination of statistics is a combination of such cells.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Self

from domain.demand.model import SignalType

MIN_ORGANISATIONS = 5
"""Minimum number of organisations behind a released cell."""
DOMINANCE_DIVISOR = 5
"""Divisor of the p% rule (Hundepool et al., Statistical Disclosure Control, 2012, section 4.2), with p = 100 / divisor.

The organisations other than the two largest must have at least this part of the largest one's signals. Otherwise the
second largest organisation could estimate the largest one's number to within p percent.
"""
ORGANISATION_STEP = 5
"""Step to which the number of organisations behind a cell is rounded down, since a difference of exact numbers is about one organisation."""


@dataclass(frozen=True, slots=True)
class CellSummary:
    """Contributions of organisations to a cell.

    Attributes:
        organisations: Number of organisations.
        amount: Number of their signals.
        largest: Number of signals of the organisation with the most.
        second: Number of signals of the organisation with the second most.
    """

    organisations: int = 0
    amount: int = 0
    largest: int = 0
    second: int = 0

    def __add__(self, other: Self) -> Self:
        """Return the summary of both; no organisation may be in both."""
        *_, second, largest = sorted((self.largest, self.second, other.largest, other.second))
        return type(self)(
            self.organisations + other.organisations, self.amount + other.amount, largest=largest, second=second
        )

    @property
    def is_releasable(self) -> bool:
        """True if the cell can be released, at least without its largest organisation."""
        return self.select_released() is not None

    def select_released(self) -> Self | None:
        """Return the summary that is released: of all organisations, else of all but the largest one, else None.

        Otherwise one organisation could suppress the statistics of all others. The third largest contribution is
        unknown, and at most the second largest one.
        """
        without_largest = type(self)(self.organisations - 1, self.amount - self.largest, self.second, self.second)
        return next((one for one in (self, without_largest) if _satisfies_rule(one)), None)


def _satisfies_rule(summary: CellSummary) -> bool:
    """Return whether enough organisations are in the cell, and the p% rule is satisfied."""
    others = summary.amount - summary.largest - summary.second
    return summary.organisations >= MIN_ORGANISATIONS and others * DOMINANCE_DIVISOR >= summary.largest


@dataclass(frozen=True, slots=True)
class Cell:
    """Cell of a vendor's day.

    Attributes:
        subject: Product or query; empty for the rest, which has all subjects without a cell of their own.
        amount: Number of signals; None if the rest was not released.
        organisations: Number of organisations, rounded down; 0 if the rest was not released.
    """

    subject: str
    type: SignalType
    amount: int | None
    organisations: int


def select_releasable(summaries: Mapping[str, CellSummary]) -> dict[str, CellSummary]:
    """Return what is released of each subject that may be released as a cell; all other subjects belong to the rest."""
    selected = ((subject, summary.select_released()) for subject, summary in summaries.items())
    return {subject: summary for subject, summary in selected if summary is not None}


def sum_summaries(*summaries: CellSummary) -> CellSummary:
    """Return the summary of all, which must have no organisation in common."""
    return reduce(add, summaries, CellSummary())


def build_cells(kind: SignalType, released: Mapping[str, CellSummary], rest: CellSummary) -> list[Cell]:
    """Return the cells of one type of signals: the released ones and, if it has signals, the rest."""
    cells = [_build_cell(subject, kind, summary) for subject, summary in released.items()]
    if released_rest := rest.select_released():
        cells.append(_build_cell("", kind, released_rest))
    elif rest.organisations:
        cells.append(Cell("", kind, None, 0))
    return cells


def _build_cell(subject: str, kind: SignalType, summary: CellSummary) -> Cell:
    return Cell(subject, kind, summary.amount, summary.organisations // ORGANISATION_STEP * ORGANISATION_STEP)
