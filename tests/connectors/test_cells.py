"""Cells beyond their limits are dropped and reported, for every connector."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from adapters.pluggy.cells import omit_oversized_cells, truncate_headers
from connectors.sdk import Limits
from domain.ingestion.model import FeedTable, Row
from domain.ingestion.ports import ParseFailed
from domain.kernel.problems import Problem, ProblemKind
from tests.connectors.test_connector_host import ScriptedConnector, create_host, create_task

LIMITS = Limits(cell_chars=100, cell_items=60)


def build_nested_list(levels: int) -> Any:
    """Return nested lists."""
    value: Any = "a"
    for _ in range(levels):
        value = [value]
    return value


def read_rows(rows: Sequence[Any], headers: Sequence[str] = ("SKU", "Text")) -> tuple[list[Row], list[Any]]:
    """Return the rows within their limits, and the reports."""
    reports: list[Any] = []
    kept = list(omit_oversized_cells(iter(rows), headers, LIMITS, lambda *report: reports.append(report)))
    return kept, reports


@pytest.mark.parametrize(
    "cell",
    [
        None, "", "x" * 100, True, 0, -5, 10**100, Decimal("12.50"), Decimal("1e20"), Decimal(0), 1.5, [], {}, ["a"] * 60,
        [{"url": "u" * 50, "alt": None, "position": 1}], {"a": {"b": {"c": ["d"]}}}, ["x" * 90] * 8, build_nested_list(20), ("a", "b"),
    ],
)  # fmt: skip
def test_cells_within_their_limits_are_unchanged(cell: Any) -> None:
    row = (2, ["A", cell])
    kept, reports = read_rows([row])
    assert kept == [row]
    assert kept[0] is row
    assert not reports


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x" * 101, "longer than 100 characters"),
        (" " * 5_000, "longer than 100 characters"),
        (10**300, "more than 200 digits"),
        (-(10**300), "more than 200 digits"),
        (Decimal("1e999999999"), "more than 200 digits"),
        (Decimal("1e-999999999"), "more than 200 digits"),
        (Decimal("1." + "1" * 5_000), "more than 200 digits"),
        (["a"] * 61, "more than 60 items"),
        ([["a"] * 9] * 9, "more than 60 items"),
        ({str(at): at for at in range(61)}, "more than 60 items"),
        (["x" * 101] * 8, "more than 800 characters"),
        ({"x" * 801: 1}, "more than 800 characters"),
        ({"a": {"b": ["x" * 801]}}, "more than 800 characters"),
        ([Decimal("1e999999999")], "more than 200 digits"),
        ({"amount": 10**300}, "more than 200 digits"),
        (build_nested_list(40), "levels deep"),
        (build_nested_list(50_000), "levels deep"),
    ],
)
def test_a_cell_beyond_its_limits_is_dropped_and_reported(cell: Any, message: str) -> None:
    row = (7, ["A", cell, "kept"])
    kept, reports = read_rows([row], ("SKU", "Text", "Note"))
    assert kept == [(7, ["A", None, "kept"])]
    ((detail, line, column),) = reports
    assert message in detail
    assert (line, column) == (7, "Text")


def test_short_cells_of_a_long_row_stay() -> None:
    row = (2, ["x" * 90] * 40)
    assert read_rows([row])[0] == [row]


def test_long_headers_are_truncated_and_reported() -> None:
    reports: list[Any] = []
    assert truncate_headers(("SKU", "x" * 5_000), lambda *report: reports.append(report)) == ("SKU", "x" * 1_000)
    assert "column 2" in reports[0][0]


class TableConnector(ScriptedConnector):
    """Connector with one table of the headers."""

    def __init__(self, headers: tuple[str, ...], rows: list[Any]) -> None:
        super().__init__(rows=rows)
        self._headers = headers

    def parse_tables(self, ctx: Any, path: Path) -> Any:
        for table in super().parse_tables(ctx, path):
            yield type(table)("Sofas", self._headers, table.rows, None)


def read_tables(
    connector: ScriptedConnector, problems: list[Problem], **limits: Any
) -> list[tuple[FeedTable, list[Row]]]:
    """Return the tables that the host passes on."""
    found = create_host(connector, **limits).parse_tables("one", create_task(), Path(), lambda _: 0, problems.append)
    return [(table, list(table.rows)) for table in found]


def test_limits_apply_to_every_connector() -> None:
    problems: list[Problem] = []
    rows = [(2, ["A", "x" * 70_000]), (3, ["B", "short"])]
    ((_, kept),) = read_tables(TableConnector(("SKU", "Text"), rows), problems)
    assert kept == [(2, ["A", None]), (3, ["B", "short"])]
    detail = "The cell is longer than 65,536 characters; it is ignored."
    assert problems == [Problem("row", ProblemKind.TOO_LONG, detail, 2, "Text", "Sofas")]


def test_a_connector_with_too_many_columns() -> None:
    with pytest.raises(ParseFailed, match="more than 10 columns"):
        read_tables(TableConnector(tuple(map(str, range(11))), []), [], columns=10)
