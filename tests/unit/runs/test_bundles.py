"""Bundles whose parts are rows of the same feed, in the same or another sheet."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from adapters.api_json.codec import JsonCodec
from adapters.files.spool import FileSpools
from domain.catalogue.statements import ProductStatement
from domain.ingestion.bundles import BundlePartData
from domain.ingestion.model import FeedSettings, FeedTable
from domain.ingestion.ports import ReadRequest
from domain.kernel.problems import Problem
from domain.runs.usecases.chunk_changes import contains_product_key
from domain.runs.usecases.row_relations import BundleResolver
from domain.runs.usecases.snapshot_reader import SnapshotReader

HEADERS = ("Item", "Single Item, Set or Part", "Parts for Group Items", "Short Description", "MSRP", "Weight (LB)",
           "Shipping Length (IN)", "Shipping Width (IN)", "Shipping Height (IN)", "Volume (CUFT)")  # fmt: skip
SET = ["LARK-7", "Set", "LARK-T, LARK-C-2PK", "7 Pc. Dining Set", "900", "150.0", "", "", "", "21.0"]
TABLE = ["LARK-T", "Part", "", "", "500", "60.0", "60", "40", "5", "6.0"]
CHAIR = ["LARK-C-2PK", "Single Item", "", "Side Chair (2/CTN)", "200", "30.0", "20", "21", "30", "5.0"]
LONE = ["WREN-X", "Part", "", "", "50", "3.0", "", "", "", ""]


class StubConnectors:
    """Connectors whose tables have the given rows."""

    def __init__(self, tables: Sequence[Sequence[list[Any]]], headers: Sequence[str] = HEADERS) -> None:
        self._tables, self._headers = tables, headers

    def parse_tables(self, *_: Any) -> Iterator[FeedTable]:
        """Yield the tables."""
        for number, rows in enumerate(self._tables, start=1):
            yield FeedTable(f"Sheet{number}", self._headers, iter(enumerate(rows, start=2)))


FeedResult = tuple[dict[str, ProductStatement], list[Problem], dict[str, bytes]]


def _read_feed(
    folder: Path, *tables: Sequence[list[Any]], buckets: int = 4, headers: Sequence[str] = HEADERS
) -> FeedResult:
    request = ReadRequest("", str(folder), "rows", {}, "catalogue", FeedSettings(currency="usd"), buckets)
    reader = SnapshotReader(StubConnectors(tables, headers), JsonCodec(), lambda path: FileSpools(path, 64), request)  # type: ignore[arg-type]
    problems = list(reader.spool().problems)
    found: dict[str, ProductStatement] = {}
    digests: dict[str, bytes] = {}
    for bucket in range(buckets):
        fingerprints = reader.load_keys(range(bucket, bucket + 1)).fingerprints
        digests |= {one.key: one.fingerprint for one in fingerprints}
        keys = [one.key for one in fingerprints]
        found |= {one.key: one for one in reader.load_statements(range(bucket, bucket + 1), keys, problems)}
    reader.close()
    return found, problems, digests


def test_a_set_takes_quantities_and_boxes_from_its_parts(tmp_path: Path) -> None:
    for tables in ([[SET, TABLE, CHAIR]], [[CHAIR, SET], [TABLE]]):
        found, _, _ = _read_feed(tmp_path, *tables)
        data = found["LARK-7"].variants[0].data
        assert [(part["sku"], part["quantity"]) for part in data["components"]] == [("LARK-T", 1), ("LARK-C-2PK", 3)]
        assert [carton["count"] for carton in data["cartons"]] == [1, 3]


def test_untitled_parts_are_not_products_and_are_reported_once(tmp_path: Path) -> None:
    found, problems, _ = _read_feed(tmp_path, [SET, TABLE, CHAIR, LONE])
    assert sorted(found) == ["LARK-7", "LARK-C-2PK"]
    assert [(p.field, p.problem, p.line, p.sheet) for p in problems] == [("title", "missing", 3, "Sheet1")]


def test_a_titled_row_declared_as_a_part_is_not_a_product(tmp_path: Path) -> None:
    named, spare = [*TABLE], [*LONE]
    named[3], spare[3] = "Table Top", "Spare Hinge"
    found, problems, _ = _read_feed(tmp_path, [SET, named, CHAIR, spare])
    assert sorted(found) == ["LARK-7", "LARK-C-2PK", "WREN-X"]
    assert found["LARK-7"].variants[0].data["components"][0]["name"] == "Table Top"
    assert [problem.line for problem in problems] == [3]


def test_a_part_with_a_title_in_any_sheet_is_a_product(tmp_path: Path) -> None:
    titled = [*TABLE]
    titled[1], titled[3] = "Single Item", "Dining Table"
    bare = [*TABLE]
    bare[1], bare[4] = "", ""
    found, _, _ = _read_feed(tmp_path, [SET, bare, CHAIR], [titled])
    assert "LARK-T" in found


def test_a_set_changes_when_its_part_does(tmp_path: Path) -> None:
    heavier = [*CHAIR]
    heavier[5] = "45.0"
    _, _, before = _read_feed(tmp_path, [SET, TABLE, CHAIR])
    _, _, same = _read_feed(tmp_path, [TABLE, SET, CHAIR])
    _, _, after = _read_feed(tmp_path, [SET, TABLE, heavier])
    assert before == same
    assert before["LARK-7"] != after["LARK-7"]


def test_a_part_whose_weight_contradicts_the_set_is_reported(tmp_path: Path) -> None:
    other = [*CHAIR]
    other[5] = "37.0"
    found, problems, _ = _read_feed(tmp_path, [SET, TABLE, other])
    assert "quantity" not in found["LARK-7"].variants[0].data["components"][0]
    assert [(p.field, p.problem, p.line) for p in problems if p.field == "components"] == [
        ("components", "conflict", 2)
    ]


FAMILY = (
    ["WREN10Q-BED", "Single Item", "", "Queen Bed, Sand", "900", "150.0", "", "", "", ""],
    ["WREN10EK-BED", "Single Item", "", "E.King Bed, Sand", "990", "170.0", "", "", "", ""],
)
ALIKE = ["WREN10QX-BED", "Single Item", "", "Queen Bed, Sand", "910", "151.0", "", "", "", ""]
OTHER = ["WREN11Q-BED", "Single Item", "", "Queen Bed, Sand", "920", "152.0", "", "", "", ""]


def test_items_that_differ_only_in_size_are_one_product(tmp_path: Path) -> None:
    for buckets in (1, 7, 64):
        found, problems, digests = _read_feed(tmp_path, [FAMILY[0], OTHER, FAMILY[1]], buckets=buckets)
        assert sorted(found) == sorted(digests) == ["WREN10-BED / bed", "WREN11Q-BED"]
        product = found["WREN10-BED / bed"]
        assert product.data["title"] == "Bed, Sand"
        assert [(one.key, one.data["title"], one.data["axes"]) for one in product.variants] == [
            ("WREN10Q-BED", "Queen Bed, Sand", {"Size": "Queen"}),
            ("WREN10EK-BED", "E.King Bed, Sand", {"Size": "E.King"}),
        ]
        assert [one.offers[0].data["msrp"] for one in product.variants] == [90000, 99000]
        assert problems == []


def test_indistinguishable_items_stay_separate(tmp_path: Path) -> None:
    found, _, _ = _read_feed(tmp_path, [*FAMILY, ALIKE])
    assert sorted(found) == ["WREN10EK-BED", "WREN10Q-BED", "WREN10QX-BED"]


def test_a_row_of_a_second_sheet_joins_the_product_of_its_item(tmp_path: Path) -> None:
    found, _, _ = _read_feed(tmp_path, [*FAMILY], [["WREN10Q-BED", "", "", "", "", "", "80", "60", "10", ""]])
    (product,) = found.values()
    assert [len(one.data.get("cartons", ())) for one in product.variants] == [1, 0]


def test_sets_of_a_family_have_their_parts(tmp_path: Path) -> None:
    rows = [
        ["LARK20GY-7", "Set", "LARK-T, LARK-C-2PK", "7 Pc. Dining Set, Gray", "900", "150.0", "", "", "", ""],
        ["LARK20WH-7", "Set", "LARK-T, LARK-C-2PK", "7 Pc. Dining Set, White", "900", "150.0", "", "", "", ""],
    ]
    found, _, digests = _read_feed(tmp_path, [*rows, TABLE, CHAIR])
    heavier = [*CHAIR]
    heavier[5] = "45.0"
    (family,) = (one for one in found.values() if len(one.variants) == 2)
    assert [[part["quantity"] for part in one.data["components"]] for one in family.variants] == [[1, 3], [1, 3]]
    _, _, after = _read_feed(tmp_path, [*rows, TABLE, heavier])
    assert digests[family.key] != after[family.key]


def test_grouped_items_have_no_key_of_their_own(tmp_path: Path) -> None:
    order = ReadRequest("", str(tmp_path), "rows", {}, "catalogue", FeedSettings(currency="usd"), 4)
    reading = SnapshotReader(StubConnectors([[*FAMILY]]), JsonCodec(), FileSpools, order)  # type: ignore[arg-type]
    slots = reading.spool().slots
    reading.close()
    assert [contains_product_key(slots, key) for key in ("WREN10-BED / bed", "WREN10Q-BED", "WREN10EK-BED")] == [
        True,
        False,
        False,
    ]


def test_a_total_row_is_not_a_product(tmp_path: Path) -> None:
    found, problems, _ = _read_feed(tmp_path, [CHAIR, ["Total", "", "", "", "1200", "240", "", "", "", ""]])
    assert sorted(found) == ["LARK-C-2PK"]
    assert [(p.field, p.problem, p.line) for p in problems] == [("sku", "unreadable", 3)]


def test_the_digest_of_parts_does_not_depend_on_names_in_the_code() -> None:
    bundles = BundleResolver()
    bundles.part_codes_by_set["BED"] = ("HEAD", "RAIL")
    bundles.part_facts["HEAD"] = BundlePartData(
        "Bed", {"hundredths_lb": 100, "given": {"value": 1, "unit": "lb"}}, Decimal("2.5"), None, ({"count": 2},)
    )
    assert bundles.compute_parts_digest("BED").hex() == "6b08362d7554a3c8c18b0c179a7c93e8"
    assert bundles.compute_parts_digest("SOFA") == b""


def test_cartons_of_parts_replace_stored_cartons_if_the_cells_of_the_set_are_blank(tmp_path: Path) -> None:
    headers = (
        *HEADERS[:5],
        "Carton 1 Weight (LB)",
        "Carton 1 Length (IN)",
        "Carton 1 Width (IN)",
        "Carton 1 Height (IN)",
    )
    rows = [
        ["BED-1", "Set", "BED-H, BED-R", "Bed", "900", "", "", "", ""],
        ["BED-H", "Single Item", "", "Headboard", "500", "60.0", "60", "40", "5"],
        ["BED-R", "Single Item", "", "Rails", "200", "30.0", "80", "8", "5"],
    ]
    found, _, _ = _read_feed(tmp_path, rows, headers=headers)
    variant = found["BED-1"].variants[0]
    assert len(variant.data["cartons"]) == 2
    assert variant.carton_cells is None
