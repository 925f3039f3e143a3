"""The row limit of a product: rows beyond the limit are counted, omitted, and reported once."""

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


class StubConnectors:
    """Connectors whose only table has the given rows."""

    def __init__(self, rows: list[list[Any]]) -> None:
        self._rows = rows

    def parse_tables(self, *_: Any) -> Iterator[FeedTable]:
        """Yield the table."""
        yield FeedTable("Sheet1", HEADERS, iter(enumerate(self._rows, start=2)), GIVEN)


class RecordingSpools(FileSpools):
    """Spools that keep the spool that they created."""

    spool: FileSpool

    def create(self, bucket_count: int) -> Any:
        """Create a spool in memory."""
        self.spool = FileSpool(Path(tempfile.gettempdir()), bucket_count, 1 << 40)
        return self

    def __enter__(self) -> FileSpool:
        return self.spool

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


def _read_rows(rows: list[list[Any]]) -> tuple[list[str], Sequence[ProductStatement], list[Problem], list[bytes]]:
    """Read the rows twice in one bucket; return the keys, statements, problems and spooled lines."""
    spools = RecordingSpools()
    request = ReadRequest("", "", "rows", {}, "catalogue", SETTINGS)
    reader = SnapshotReader(StubConnectors(rows), JsonCodec(), lambda _: spools, request)
    reader.spool()
    for _ in range(2):
        keys = [one.key for one in reader.load_keys(range(1)).fingerprints]
        reader.load_keys(range(0))
        problems: list[Problem] = []
        statements = list(reader.load_statements(range(1), keys, problems))
    return keys, statements, problems, list(spools.spool.read_lines(0))


def test_rows_of_one_product_are_read_up_to_the_limit() -> None:
    rows = [["other", "o-1", "Chair", "1.00"]]
    rows += [["one", f"v-{number}", "Sofa", "2.00"] for number in range(4 * MAX_ROWS_PER_PRODUCT)]
    rows += [["last", "l-1", "Table", "3.00"]]
    keys, statements, problems, spooled = _read_rows(rows)
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
    _, _, problems, spooled = _read_rows(rows)
    assert len(spooled) < MAX_ROWS_PER_PRODUCT // 10
    assert sum(map(len, spooled)) <= 2 * (MAX_ROWS_PER_PRODUCT + 1) * BYTES_PER_COUNTED_ROW
    assert [problem.field for problem in problems].count("rows") == 1


def test_rows_of_many_products_are_not_limited() -> None:
    rows = [[f"p-{number}", f"v-{number}", "Sofa", "2.00"] for number in range(3 * MAX_ROWS_PER_PRODUCT)]
    keys, _, problems, spooled = _read_rows(rows)
    assert len(spooled) == len(keys) == 3 * MAX_ROWS_PER_PRODUCT
    assert problems == []
