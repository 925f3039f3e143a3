"""Sets whose parts are rows of the same feed, in one sheet or another."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from adapters.files.spool import FileSpools
from adapters.wire.codec import JsonCodec
from domain.catalogue.statements import ProductStatement
from domain.ingestion.model import FeedSettings, FeedTable
from domain.kernel.problems import Problem
from domain.runs.usecases.reading import SnapshotReading
from ports.feed_readers import ReadingOrder

HEADERS = ("Item", "Single Item, Set or Part", "Parts for Group Items", "Short Description", "MSRP", "Weight (LB)",
           "Shipping Length (IN)", "Shipping Width (IN)", "Shipping Height (IN)", "Volume (CUFT)")  # fmt: skip
SET = ["LARK-7", "Set", "LARK-T, LARK-C-2PK", "7 Pc. Dining Set", "900", "150.0", "", "", "", "21.0"]
TABLE = ["LARK-T", "Part", "", "", "500", "60.0", "60", "40", "5", "6.0"]
CHAIR = ["LARK-C-2PK", "Single Item", "", "Side Chair (2/CTN)", "200", "30.0", "20", "21", "30", "5.0"]
LONE = ["WREN-X", "Part", "", "", "50", "3.0", "", "", "", ""]


class Rows:
    """Connectors whose tables have these rows."""

    def __init__(self, tables: Sequence[Sequence[list[Any]]]) -> None:
        self._tables = tables

    def tables(self, *_: Any) -> Iterator[FeedTable]:
        """The tables."""
        for number, rows in enumerate(self._tables, start=1):
            yield FeedTable(f"Sheet{number}", HEADERS, iter(enumerate(rows, start=2)))


Read = tuple[dict[str, ProductStatement], list[Problem], dict[str, bytes]]


def _read(folder: Path, *tables: Sequence[list[Any]], buckets: int = 4) -> Read:
    order = ReadingOrder("", str(folder), "rows", {}, "catalogue", FeedSettings(currency="usd"), buckets)
    reading = SnapshotReading(Rows(tables), JsonCodec(), lambda path: FileSpools(path, 64), order)  # type: ignore[arg-type]
    problems = list(reading.spool().problems)
    found: dict[str, ProductStatement] = {}
    digests: dict[str, bytes] = {}
    for bucket in range(buckets):
        gathered = reading.gather(range(bucket, bucket + 1)).fingerprints
        digests |= {one.key: one.fingerprint for one in gathered}
        keys = [one.key for one in gathered]
        found |= {one.key: one for one in reading.statements(range(bucket, bucket + 1), keys, problems)}
    reading.close()
    return found, problems, digests


def test_a_set_takes_quantities_and_boxes_from_its_parts(tmp_path: Path) -> None:
    for tables in ([[SET, TABLE, CHAIR]], [[CHAIR, SET], [TABLE]]):
        found, _, _ = _read(tmp_path, *tables)
        data = found["LARK-7"].variants[0].data
        assert [(part["sku"], part["quantity"]) for part in data["components"]] == [("LARK-T", 1), ("LARK-C-2PK", 3)]
        assert [carton["count"] for carton in data["cartons"]] == [1, 3]


def test_untitled_parts_are_no_products_and_told_once(tmp_path: Path) -> None:
    found, problems, _ = _read(tmp_path, [SET, TABLE, CHAIR, LONE])
    assert sorted(found) == ["LARK-7", "LARK-C-2PK"]
    assert [(p.field, p.problem, p.line, p.sheet) for p in problems] == [("title", "missing", 3, "Sheet1")]


def test_a_part_that_is_titled_anywhere_is_a_product(tmp_path: Path) -> None:
    titled = [*TABLE]
    titled[3] = "Dining Table"
    found, _, _ = _read(tmp_path, [SET, TABLE, CHAIR], [titled])
    assert "LARK-T" in found


def test_a_set_changes_when_its_part_does(tmp_path: Path) -> None:
    heavier = [*CHAIR]
    heavier[5] = "45.0"
    _, _, before = _read(tmp_path, [SET, TABLE, CHAIR])
    _, _, same = _read(tmp_path, [TABLE, SET, CHAIR])
    _, _, after = _read(tmp_path, [SET, TABLE, heavier])
    assert before == same
    assert before["LARK-7"] != after["LARK-7"]


def test_a_part_that_weighs_otherwise_than_the_set_says_is_told(tmp_path: Path) -> None:
    other = [*CHAIR]
    other[5] = "37.0"
    found, problems, _ = _read(tmp_path, [SET, TABLE, other])
    assert "quantity" not in found["LARK-7"].variants[0].data["components"][0]
    assert [(p.field, p.problem, p.line) for p in problems if p.field == "components"] == [
        ("components", "conflict", 2)
    ]
