"""Confirmed meanings of headers, applied to proposals (domain/ingestion/mapping/learned.py)."""

from dataclasses import replace
from random import Random
from typing import Any

from domain.ingestion.mapping.columns import (
    allows_several_columns,
    find_column_target,
    find_missing_data,
    find_repeated_columns,
)
from domain.ingestion.mapping.learned import ConfirmedMapping, LearnedMappings, compute_header_digest, limit_mappings
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, UnmappedColumn, UnmappedReason

USD = FeedSettings("usd")
PERSON, LEARNED, BUILT_IN = MappingTier.PERSON, MappingTier.LEARNED, MappingTier.BUILT_IN


def _build_confirmed_mapping(
    headers: list[str], fields: dict[str, Any], *, own: bool = False, tier: MappingTier = PERSON, **settings: Any
) -> ConfirmedMapping:
    columns = tuple(
        Column(at, header, fields[header], settings.get(header, {}), tier)
        for at, header in enumerate(headers)
        if fields.get(header)
    )
    left_out = tuple(
        UnmappedColumn(at, header, UnmappedReason.IGNORED if header in fields else UnmappedReason.UNKNOWN)
        for at, header in enumerate(headers)
        if not fields.get(header)
    )
    return ConfirmedMapping(compute_header_digest(headers), own, tuple(headers), columns, left_out)


def _propose_mapping(
    headers: list[str], *known: ConfirmedMapping, rows: tuple[list[str], ...] = (), settings: FeedSettings = USD
) -> Any:
    samples = [list(row) for row in rows]
    proposed = propose_column_mapping(headers, samples, settings)
    return LearnedMappings(known).apply_to(proposed, samples, settings)


def _get_fields(mapping: HeaderMapping) -> dict[str, str]:
    return {column.column: column.field for column in mapping.columns}


def _get_reasons(mapping: HeaderMapping) -> dict[str, str]:
    return {left_out.column: left_out.reason for left_out in mapping.unmapped}


def test_the_proposal_is_unchanged_without_confirmed_mappings() -> None:
    proposed = propose_column_mapping(["SKU", "Zorb"], [["A1", "x"]], USD)
    assert LearnedMappings().apply_to(proposed, [["A1", "x"]], USD) is proposed


def test_headers_of_the_source_are_read_as_confirmed() -> None:
    headers = ["Zorb", "SKU", "Flim"]
    known = _build_confirmed_mapping(
        headers, {"Zorb": "sku", "SKU": "mpn", "Flim": None}, own=True, Zorb={"fallback": "1"}
    )
    mapping = _propose_mapping(headers, known, rows=(["a", "b", "c"],))
    assert (mapping.columns, mapping.unmapped, mapping.missing) == (known.columns, known.unmapped, ())
    turned = _propose_mapping(["Flim", "SKU", "Zorb"], known)
    assert {column.tier for column in turned.columns} == {LEARNED}, "another order is a different header set"
    assert (_get_fields(turned), _get_reasons(turned)) == (_get_fields(mapping), {"Flim": "ignored"})


def test_each_file_proves_its_price_format_unless_a_person_set_it() -> None:
    headers, given = ["Zorb", "Flim"], {"Zorb": "sku", "Flim": "cost"}
    comma = {"Flim": {"decimal": "comma"}}
    rows = (["a", "1,234.50"], ["b", "19.99"])
    for tier, mark in ((BUILT_IN, "dot"), (PERSON, "comma")):
        mapping = _propose_mapping(
            headers, _build_confirmed_mapping(headers, given, own=True, tier=tier, **comma), rows=rows
        )
        assert dict(mapping.columns[1].settings) == {"decimal": mark}
    unsaid = _propose_mapping(headers, _build_confirmed_mapping(headers, given, own=True), rows=rows)
    assert dict(unsaid.columns[1].settings) == {"decimal": "dot"}


def test_missing_data_depends_on_the_stream() -> None:
    known = _build_confirmed_mapping(["Zorb"], {"Zorb": "sku"}, own=True)
    assert _propose_mapping(["Zorb"], known).missing == ()
    assert _propose_mapping(["Zorb"], known, settings=FeedSettings("usd", stream="stock")).missing == ("stock",)


def test_headers_of_another_source_are_learned() -> None:
    headers = ["Zorb", "Flim", "Quix"]
    settings = {"Flim": {"currency": "eur", "decimal": "comma", "location": "NJ"}}
    known = _build_confirmed_mapping(headers, {"Zorb": "sku", "Flim": "cost", "Quix": None}, **settings)
    mapping = _propose_mapping(headers, known, rows=(["a", "12", "x"],))
    assert [(c.field, dict(c.settings), c.tier) for c in mapping.columns] == [
        ("sku", {}, LEARNED), ("cost", {"location": "NJ"}, LEARNED),
    ]  # fmt: skip
    assert _get_reasons(mapping) == {"Quix": "unknown"} and mapping.missing == ()


def test_a_unit_of_the_market_is_not_learned() -> None:
    headers = ["Zorb", "Breit", "Hoch"]
    known = _build_confirmed_mapping(
        headers, {"Zorb": "sku", "Breit": "dimensions.width", "Hoch": "dimensions.height"},
        Breit={"unit": "in", "unit_by": "market"}, Hoch={"unit": "mm"},
    )  # fmt: skip
    mapping = _propose_mapping(headers, known, rows=(["a", "80", "700"],), settings=FeedSettings("eur"))
    assert {c.column: dict(c.settings) for c in mapping.columns if c.column != "Zorb"} == {
        "Breit": {"unit": "cm", "unit_by": "market"}, "Hoch": {"unit": "mm"},
    }  # fmt: skip


def test_conflicting_confirmations_are_not_learned() -> None:
    headers = ["Zorb", "Flim"]
    one, other = (_build_confirmed_mapping(headers, {"Zorb": "sku", "Flim": field}) for field in ("cost", "msrp"))
    mapping = _propose_mapping(headers, one, other)
    assert _get_fields(mapping) == {"Zorb": "sku"} and _get_reasons(mapping) == {"Flim": "unknown"}
    own = _build_confirmed_mapping(headers, {"Zorb": "sku", "Flim": "map"}, own=True)
    assert _get_fields(_propose_mapping(headers, own, one, other))["Flim"] == "map", (
        "the source's own mapping takes precedence"
    )


def test_a_single_header_is_recognised_next_to_a_known_neighbour() -> None:
    known = _build_confirmed_mapping(["Zorb", "Flim", "Quix"], {"Zorb": "sku", "Flim": "cost"})
    assert _get_fields(_propose_mapping(["New", "zorb", "FLIM ", "More"], known)) == {"zorb": "sku", "FLIM ": "cost"}
    assert _get_fields(_propose_mapping(["Zorb", "New", "Flim"], known)) == {}, "no column has its former neighbour"
    assert _get_fields(_propose_mapping(["Flim"], known)) == {} and _get_fields(_propose_mapping([""], known)) == {}


def test_a_header_of_the_source_has_the_same_meaning_at_any_position() -> None:
    """Records have their keys in any order, and vendors insert columns."""
    known = _build_confirmed_mapping(["Zorb", "Flim"], {"Zorb": "sku", "Flim": "cost"}, own=True)
    assert _get_fields(_propose_mapping(["Flim", "New", "Zorb"], known)) == {"Flim": "cost", "Zorb": "sku"}
    two = _build_confirmed_mapping(["Flim", "Zorb", "Flim"], {"Zorb": "sku"}, own=True)
    two = replace(
        two, columns=(*two.columns, Column(0, "Flim", "cost", {}, PERSON), Column(2, "Flim", "msrp", {}, PERSON))
    )
    assert _get_fields(_propose_mapping(["New", "Flim", "New 2", "Zorb"], two)) == {"Zorb": "sku"}, (
        "the column is ambiguous"
    )


def test_only_columns_that_people_edited_are_learned_individually() -> None:
    known = _build_confirmed_mapping(["Zorb", "Flim"], {"Zorb": "sku", "Flim": "cost"}, tier=BUILT_IN)
    assert _get_fields(_propose_mapping(["Zorb", "Flim", "New"], known)) == {}
    assert _get_fields(_propose_mapping(["Zorb", "Flim"], known)) == {"Zorb": "sku", "Flim": "cost"}, (
        "the whole set was confirmed"
    )


def test_a_field_proposed_for_another_column_stays_there() -> None:
    known = _build_confirmed_mapping(["Zorb", "Flim"], {"Zorb": "sku", "Flim": "title"})
    mapping = _propose_mapping(["SKU", "Title", "Zorb", "Flim"], known)
    assert _get_fields(mapping) == {"SKU": "sku", "Title": "title"} and _get_reasons(mapping)["Zorb"] == "unknown"
    firm = _build_confirmed_mapping(["SKU", "Zorb"], {"Zorb": "sku", "SKU": None})
    assert _get_fields(_propose_mapping(["SKU", "Zorb"], firm)) == {"Zorb": "sku"}, "the complete header set decides"


def test_columns_ignored_by_the_source_stay_ignored() -> None:
    known = _build_confirmed_mapping(
        ["SKU", "Price", "Qty"], {"SKU": "sku", "Price": None, "Qty": "quantity"}, own=True
    )
    mapping = _propose_mapping(["SKU", "Price", "Qty", "Title"], known)
    assert "Price" not in _get_fields(mapping) and _get_reasons(mapping)["Price"] == "ignored"
    assert "Price" in _get_fields(_propose_mapping(["SKU", "Price", "Qty", "Title"], replace(known, is_own=False)))


def test_digests_distinguish_header_sets() -> None:
    sets = [("a", "b"), ("ab",), ("a", "b", ""), ("", "a", "b"), ("b", "a"), ("A", "b"), ()]
    assert len({compute_header_digest(headers) for headers in sets}) == len(sets)
    assert compute_header_digest(("a\0",)) == compute_header_digest(("a\ufffd",)), "as stored"
    assert compute_header_digest(("\ud800",)) == compute_header_digest(("?",))


def test_mappings_are_limited_by_columns() -> None:
    known = [
        _build_confirmed_mapping(["a", "b"], {}),
        _build_confirmed_mapping(["c"], {}),
        _build_confirmed_mapping(["d"], {}),
    ]
    assert (
        limit_mappings(known, 3) == tuple(known[:2]) and limit_mappings(known, 1) == () and limit_mappings([], 1) == ()
    )


def test_generated_tables_keep_their_columns_and_fields() -> None:
    """Every column is listed once, and no exclusive field is assigned twice by a decision."""
    random = Random(7)
    words = ["SKU", "Zorb", "Flim", "Title", "Price", "Qty NJ", "Width", "Image 1", "Cost", "", "Größe", "UPC"]
    fields = ["sku", "title", "cost", "quantity", "dimensions.width", "media", "gtin", None]
    for _ in range(300):
        known = []
        for _ in range(random.randrange(4)):
            headers = random.choices(words, k=random.randrange(1, 7))
            given = {header: random.choice(fields) for header in headers}
            known.append(_build_confirmed_mapping(headers, given, own=random.random() < 0.3))
        headers = list(random.choice(known).headers) if known and random.random() < 0.5 else random.choices(words, k=6)
        mapping = _propose_mapping(headers, *known, rows=(["A1"] * len(headers),))
        own = any(one.is_own and one.digest == compute_header_digest(headers) for one in known)
        places = [c.position for c in mapping.columns] + [u.position for u in mapping.unmapped]
        assert sorted(places) == list(range(len(headers)))
        assert mapping.headers == tuple(headers)
        assert mapping.missing == find_missing_data(mapping.columns, "catalogue")
        if not own:
            learned = [c for c in mapping.columns if c.tier == LEARNED and not allows_several_columns(c.field)]
            for column in learned:
                assert [c for c in mapping.columns if find_column_target(c) == find_column_target(column)] == [column]


def test_repeated_columns_are_found() -> None:
    columns = [
        Column(0, "a", "sku", {}), Column(1, "b", "sku", {}), Column(2, "c", "media", {}), Column(3, "d", "media", {}),
        Column(4, "e", "quantity", {"location": "NJ"}), Column(5, "f", "quantity", {"location": "CA"}),
        Column(6, "g", "dimensions.width", {}), Column(7, "h", "dimensions.width", {}),
    ]  # fmt: skip
    assert [column.position for column in find_repeated_columns(columns)] == [1]


def test_missing_data_agrees_with_proposals() -> None:
    for headers in (["Zorb"], ["SKU"], ["Title"], ["SKU", "Qty"], ["UPC", "Price"]):
        for stream in ("catalogue", "stock"):
            proposed = propose_column_mapping(headers, [], FeedSettings("usd", stream=stream))
            assert proposed.missing == find_missing_data(proposed.columns, stream)
