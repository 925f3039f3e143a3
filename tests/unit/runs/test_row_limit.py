"""Products with very many rows: rows beyond the limit are counted, left out, and reported once."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from adapters.api_json.codec import JsonCodec
from adapters.files.spool import FileSpool, FileSpools
from domain.catalogue.statements import ProductStatement
from domain.ingestion.model import FeedSettings, FeedTable
from domain.ingestion.ports import ReadRequest
from domain.kernel.bounds import BYTES_PER_COUNTED_ROW, MAX_IMPORTED_VARIANTS, MAX_ROWS_PER_PRODUCT
from domain.kernel.problems import Problem
from domain.runs.usecases.snapshot_reader import SnapshotReader

pytestmark = pytest.mark.slow

HEADERS = ("Group", "SKU", "Name", "Price")
GIVEN = ("product_key", "sku", "title", "price")
SETTINGS = FeedSettings(currency="usd")


class Rows:
    """Connectors whose only table has these rows."""

    def __init__(self, rows: list[list[Any]]) -> None:
        self._rows = rows

    def parse_tables(self, *_: Any) -> Iterator[FeedTable]:
        """The table."""
        yield FeedTable("Sheet1", HEADERS, iter(enumerate(self._rows, start=2)), GIVEN)


class Counted(FileSpools):
    """Spools that keep the one they made."""

    spool: FileSpool

    def create(self, bucket_count: int) -> Any:
        """One in memory."""
        self.spool = FileSpool(Path(tempfile.gettempdir()), bucket_count, 1 << 40)
        return self

    def __enter__(self) -> FileSpool:
        return self.spool

    def __exit__(self, *_: object) -> None:
        """Nothing to remove."""


def _read(rows: list[list[Any]]) -> tuple[list[str], Sequence[ProductStatement], list[Problem], list[bytes]]:
    """The keys, statements and problems of those rows in one bucket, read twice over, and the lines put aside."""
    spools = Counted()
    order = ReadRequest("", "", "rows", {}, "catalogue", SETTINGS)
    reading = SnapshotReader(Rows(rows), JsonCodec(), lambda _: spools, order)
    reading.spool()
    for _ in range(2):
        keys = [one.key for one in reading.load_keys(range(1)).fingerprints]
        reading.load_keys(range(0))
        problems: list[Problem] = []
        statements = list(reading.load_statements(range(1), keys, problems))
    return keys, statements, problems, list(spools.spool.read_lines(0))


def test_rows_of_one_product_are_read_up_to_the_most() -> None:
    rows = [["other", "o-1", "Chair", "1.00"]]
    rows += [["one", f"v-{number}", "Sofa", "2.00"] for number in range(4 * MAX_ROWS_PER_PRODUCT)]
    rows += [["last", "l-1", "Table", "3.00"]]
    keys, statements, problems, spooled = _read(rows)
    assert len(spooled) <= 2 * MAX_ROWS_PER_PRODUCT + 2
    assert keys == ["other", "one", "last"]
    assert {statement.key: len(statement.variants) for statement in statements}["one"] == MAX_IMPORTED_VARIANTS
    (fault,) = [problem for problem in problems if problem.field == "rows"]
    assert (fault.line, fault.sheet) == (MAX_ROWS_PER_PRODUCT + 3, "Sheet1")
    assert f"{3 * MAX_ROWS_PER_PRODUCT:,} rows of one" in fault.detail
    assert [problem.field for problem in problems if problem.field != "axes"] == ["variants", "rows"]


def test_long_rows_count_as_several() -> None:
    rows = [
        ["one", f"v-{number}", "x" * 20 * BYTES_PER_COUNTED_ROW, "2.00"] for number in range(MAX_ROWS_PER_PRODUCT // 10)
    ]
    _, _, problems, spooled = _read(rows)
    assert len(spooled) < MAX_ROWS_PER_PRODUCT // 10
    assert sum(map(len, spooled)) <= 2 * (MAX_ROWS_PER_PRODUCT + 1) * BYTES_PER_COUNTED_ROW
    assert [problem.field for problem in problems].count("rows") == 1


def test_many_products_are_not_counted() -> None:
    rows = [[f"p-{number}", f"v-{number}", "Sofa", "2.00"] for number in range(3 * MAX_ROWS_PER_PRODUCT)]
    keys, _, problems, spooled = _read(rows)
    assert len(spooled) == len(keys) == 3 * MAX_ROWS_PER_PRODUCT
    assert problems == []
