"""Rule for the release of cells, and the sums of released cells by day and week."""

from datetime import UTC, date, datetime

import pytest

from domain.demand.cells import Cell, CellSummary, build_cells, select_releasable, sum_summaries
from domain.demand.model import SignalType, find_first_open_day, find_release_bound, normalise_query
from domain.demand.statistics import DayAmount, build_series, find_period


def summarise(*amounts: int) -> CellSummary:
    return sum_summaries(*(CellSummary(1, amount, amount) for amount in amounts))


def test_summaries_of_different_nodes_are_added() -> None:
    assert summarise(4, 9) + summarise(7, 1, 8) == CellSummary(5, 29, largest=9, second=8)


@pytest.mark.parametrize(
    ("amounts", "is_releasable"),
    [
        ((1, 1, 1, 1, 1), True),
        ((9, 9, 9, 9), False),
        ((15, 1, 1, 1, 1), True),
        ((16, 1, 1, 1, 1), False),
        ((100, 100, 1, 1, 1), False),
        ((100, 100, 10, 5, 5), True),
        ((100, 100, 100, 1, 1, 1), True),
        ((900, 100, 100, 1, 1, 1), False),
    ],
)
def test_a_cell_has_five_organisations_of_which_none_dominates(amounts: tuple[int, ...], is_releasable: bool) -> None:
    assert summarise(*amounts).is_releasable == is_releasable


def test_a_dominant_organisation_is_left_out() -> None:
    assert select_releasable({"a": summarise(900, 2, 2, 2, 2, 2)}) == {"a": CellSummary(5, 10, largest=2, second=2)}
    assert build_cells(SignalType.VIEW, {}, summarise(900, 2, 2, 2, 2, 2)) == [Cell("", SignalType.VIEW, 10, 5)]


def test_the_rest_is_released_like_a_cell_or_left_out() -> None:
    subjects = {"a": summarise(2, 2, 2, 2, 2, 2), "b": summarise(1, 1)}
    released = select_releasable(subjects)
    cell = Cell("a", SignalType.VIEW, 12, 5)
    assert build_cells(SignalType.VIEW, released, summarise(1, 1)) == [cell, Cell("", SignalType.VIEW, None, 0)]
    assert build_cells(SignalType.VIEW, released, summarise()) == [cell]
    assert build_cells(SignalType.VIEW, {}, summarise(*[1] * 11)) == [Cell("", SignalType.VIEW, 11, 10)]


def test_days_are_open_for_twelve_hours_and_released_after_thirteen() -> None:
    noon, hour = datetime(2026, 11, 20, 12, tzinfo=UTC), datetime(2026, 11, 20, 13, tzinfo=UTC)
    assert find_first_open_day(noon.replace(hour=11, minute=59)) == date(2026, 11, 19)
    assert find_first_open_day(noon) == date(2026, 11, 20)
    assert find_release_bound(noon.replace(minute=59)) == date(2026, 11, 19)
    assert find_release_bound(hour) == date(2026, 11, 20)
    assert find_period("7d", hour) == (date(2026, 11, 13), date(2026, 11, 19))


def test_weeks_begin_on_monday_or_with_the_period() -> None:
    amounts = [DayAmount(date(2026, 11, 13), 5), DayAmount(date(2026, 11, 15), 6), DayAmount(date(2026, 11, 19), 7)]
    series = build_series(SignalType.VIEW, date(2026, 11, 13), date(2026, 11, 24), amounts, weekly=True)
    points = {point.at: point.value for point in series.points}
    assert points == {date(2026, 11, 13): 11, date(2026, 11, 16): 7, date(2026, 11, 23): None}


def test_queries_are_normalised() -> None:
    assert normalise_query("  Oak\u00a0 SIDEBOARD\n") == "oak sideboard"
