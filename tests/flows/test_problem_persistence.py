"""A problem of a row stays reported, with its current line, as long as the row is unchanged."""

from pathlib import Path
from typing import Any

import pytest

from tests.flows.feeds import build_csv
from tests.flows.in_process_service import open_service

pytestmark = pytest.mark.asyncio
HEADERS = ("SKU", "Title", "Price", "Qty")


def _list_problems(run: Any) -> list[tuple[Any, ...]]:
    return [(problem["external_id"], problem["line"], problem["column"]) for problem in run["problems"]]


async def test_problems_of_unchanged_rows_remain(tmp_path: Path) -> None:
    rows = [
        ("A-1", "Oak chair", "499.00", 4),
        ("A-2", "Ash chair", "a few", 4),
        ("A-3", "Elm chair", "99.00", "lots of it"),
    ]
    async with open_service(tmp_path) as service:
        first = await service.import_file(build_csv(HEADERS, list(rows)))
        source = first["source"]
        expected = [("A-2", 3, "Price"), ("A-3", 4, "Qty")]
        assert sorted(_list_problems(first)) == expected
        again = await service.import_file(build_csv(HEADERS, list(rows)), source)
        assert (again["stats"]["unchanged_feed"], again["stats"]["problems"]) == (1, 2)
        assert sorted(_list_problems(again)) == expected
        moved = await service.import_file(build_csv(HEADERS, [("A-0", "Teak chair", "7.00", 1), *rows]), source)
        assert (moved["stats"]["unchanged"], moved["stats"]["problems"]) == (3, 2)
        assert sorted(_list_problems(moved)) == [("A-2", 4, "Price"), ("A-3", 5, "Qty")]
        corrected = await service.import_file(
            build_csv(HEADERS, [rows[0], ("A-2", "Ash chair", "5.00", 4), rows[2]]), source
        )
        assert _list_problems(corrected) == [("A-3", 4, "Qty")]


async def test_problems_of_a_stock_sheet_remain(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        run = await service.import_file(build_csv(HEADERS, [(f"A-{n}", f"Chair {n}", "4.00", 1) for n in range(3)]))
        source = run["source"]
        sheet: list[tuple[object, ...]] = [("A-0", 5), ("A-1", "who knows"), ("A-9", 2)]
        for last in (7, 8):
            run = await service.import_file(build_csv(("SKU", "Available Quantity"), [*sheet, ("A-2", last)]), source)
            assert run["stream"] == "stock" and run["stats"]["problems"] == 2
            assert {(problem["external_id"], problem["line"]) for problem in run["problems"]} == {
                ("A-1", 3),
                ("A-9", 4),
            }
