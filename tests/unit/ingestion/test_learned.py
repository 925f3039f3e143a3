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


def _known(
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


def _read(
    headers: list[str], *known: ConfirmedMapping, rows: tuple[list[str], ...] = (), settings: FeedSettings = USD
) -> Any:
    samples = [list(row) for row in rows]
    proposed = propose_column_mapping(headers, samples, settings)
    return LearnedMappings(known).apply_to(proposed, samples, settings)


def _fields(mapping: HeaderMapping) -> dict[str, str]:
    return {column.column: column.field for column in mapping.columns}


def _reasons(mapping: HeaderMapping) -> dict[str, str]:
    return {left_out.column: left_out.reason for left_out in mapping.unmapped}


def test_nothing_known_leaves_the_proposal() -> None:
    proposed = propose_column_mapping(["SKU", "Zorb"], [["A1", "x"]], USD)
    assert LearnedMappings().apply_to(proposed, [["A1", "x"]], USD) is proposed


def test_the_source_s_own_headers_are_read_as_confirmed() -> None:
    headers = ["Zorb", "SKU", "Flim"]
    known = _known(headers, {"Zorb": "sku", "SKU": "mpn", "Flim": None}, own=True, Zorb={"fallback": "1"})
    mapping = _read(headers, known, rows=(["a", "b", "c"],))
    assert (mapping.columns, mapping.unmapped, mapping.missing) == (known.columns, known.unmapped, ())
    turned = _read(["Flim", "SKU", "Zorb"], known)
    assert {column.tier for column in turned.columns} == {LEARNED}, "another order is another header set"
    assert (_fields(turned), _reasons(turned)) == (_fields(mapping), {"Flim": "ignored"})


def test_each_file_proves_its_price_format_unless_a_person_set_it() -> None:
    headers, given = ["Zorb", "Flim"], {"Zorb": "sku", "Flim": "cost"}
    comma = {"Flim": {"decimal": "comma"}}
    rows = (["a", "1,234.50"], ["b", "19.99"])
    for tier, mark in ((BUILT_IN, "dot"), (PERSON, "comma")):
        mapping = _read(headers, _known(headers, given, own=True, tier=tier, **comma), rows=rows)
        assert dict(mapping.columns[1].settings) == {"decimal": mark}
    unsaid = _read(headers, _known(headers, given, own=True), rows=rows)
    assert dict(unsaid.columns[1].settings) == {"decimal": "dot"}


def test_what_is_missing_goes_by_the_stream() -> None:
    known = _known(["Zorb"], {"Zorb": "sku"}, own=True)
    assert _read(["Zorb"], known).missing == ()
    assert _read(["Zorb"], known, settings=FeedSettings("usd", stream="stock")).missing == ("stock",)


def test_another_source_s_headers_are_learned() -> None:
    headers = ["Zorb", "Flim", "Quix"]
    settings = {"Flim": {"currency": "eur", "decimal": "comma", "location": "NJ"}}
    known = _known(headers, {"Zorb": "sku", "Flim": "cost", "Quix": None}, **settings)
    mapping = _read(headers, known, rows=(["a", "12", "x"],))
    assert [(c.field, dict(c.settings), c.tier) for c in mapping.columns] == [
        ("sku", {}, LEARNED), ("cost", {"location": "NJ"}, LEARNED),
    ]  # fmt: skip
    assert _reasons(mapping) == {"Quix": "unknown"} and mapping.missing == ()


def test_a_unit_of_the_market_is_not_carried_over() -> None:
    headers = ["Zorb", "Breit", "Hoch"]
    known = _known(
        headers, {"Zorb": "sku", "Breit": "dimensions.width", "Hoch": "dimensions.height"},
        Breit={"unit": "in", "unit_by": "market"}, Hoch={"unit": "mm"},
    )  # fmt: skip
    mapping = _read(headers, known, rows=(["a", "80", "700"],), settings=FeedSettings("eur"))
    assert {c.column: dict(c.settings) for c in mapping.columns if c.column != "Zorb"} == {
        "Breit": {"unit": "cm", "unit_by": "market"}, "Hoch": {"unit": "mm"},
    }  # fmt: skip


def test_where_people_disagree_nothing_is_learned() -> None:
    headers = ["Zorb", "Flim"]
    one, other = (_known(headers, {"Zorb": "sku", "Flim": field}) for field in ("cost", "msrp"))
    mapping = _read(headers, one, other)
    assert _fields(mapping) == {"Zorb": "sku"} and _reasons(mapping) == {"Flim": "unknown"}
    own = _known(headers, {"Zorb": "sku", "Flim": "map"}, own=True)
    assert _fields(_read(headers, own, one, other))["Flim"] == "map", "its own people have the last word"


def test_a_single_header_is_recognised_next_to_a_known_neighbour() -> None:
    known = _known(["Zorb", "Flim", "Quix"], {"Zorb": "sku", "Flim": "cost"})
    assert _fields(_read(["New", "zorb", "FLIM ", "More"], known)) == {"zorb": "sku", "FLIM ": "cost"}
    assert _fields(_read(["Zorb", "New", "Flim"], known)) == {}, "neither has a neighbour it had"
    assert _fields(_read(["Flim"], known)) == {} and _fields(_read([""], known)) == {}


def test_a_header_of_the_source_itself_means_the_same_wherever_it_stands() -> None:
    """Records have their keys in any order, and vendors insert columns."""
    known = _known(["Zorb", "Flim"], {"Zorb": "sku", "Flim": "cost"}, own=True)
    assert _fields(_read(["Flim", "New", "Zorb"], known)) == {"Flim": "cost", "Zorb": "sku"}
    two = _known(["Flim", "Zorb", "Flim"], {"Zorb": "sku"}, own=True)
    two = replace(
        two, columns=(*two.columns, Column(0, "Flim", "cost", {}, PERSON), Column(2, "Flim", "msrp", {}, PERSON))
    )
    assert _fields(_read(["New", "Flim", "New 2", "Zorb"], two)) == {"Zorb": "sku"}, "which of them, nobody knows"


def test_only_columns_that_people_edited_are_learned_individually() -> None:
    known = _known(["Zorb", "Flim"], {"Zorb": "sku", "Flim": "cost"}, tier=BUILT_IN)
    assert _fields(_read(["Zorb", "Flim", "New"], known)) == {}
    assert _fields(_read(["Zorb", "Flim"], known)) == {"Zorb": "sku", "Flim": "cost"}, "the whole set was confirmed"


def test_a_field_that_is_proposed_elsewhere_stays_there() -> None:
    known = _known(["Zorb", "Flim"], {"Zorb": "sku", "Flim": "title"})
    mapping = _read(["SKU", "Title", "Zorb", "Flim"], known)
    assert _fields(mapping) == {"SKU": "sku", "Title": "title"} and _reasons(mapping)["Zorb"] == "unknown"
    firm = _known(["SKU", "Zorb"], {"Zorb": "sku", "SKU": None})
    assert _fields(_read(["SKU", "Zorb"], firm)) == {"Zorb": "sku"}, "the whole set says which one it is"


def test_what_the_source_s_people_left_out_stays_out() -> None:
    known = _known(["SKU", "Price", "Qty"], {"SKU": "sku", "Price": None, "Qty": "quantity"}, own=True)
    mapping = _read(["SKU", "Price", "Qty", "Title"], known)
    assert "Price" not in _fields(mapping) and _reasons(mapping)["Price"] == "ignored"
    assert "Price" in _fields(_read(["SKU", "Price", "Qty", "Title"], replace(known, is_own=False)))


def test_digests_distinguish_header_sets() -> None:
    sets = [("a", "b"), ("ab",), ("a", "b", ""), ("", "a", "b"), ("b", "a"), ("A", "b"), ()]
    assert len({compute_header_digest(headers) for headers in sets}) == len(sets)
    assert compute_header_digest(("a\0",)) == compute_header_digest(("a\ufffd",)), "as it is stored"
    assert compute_header_digest(("\ud800",)) == compute_header_digest(("?",))


def test_bounded_by_columns() -> None:
    known = [_known(["a", "b"], {}), _known(["c"], {}), _known(["d"], {})]
    assert (
        limit_mappings(known, 3) == tuple(known[:2]) and limit_mappings(known, 1) == () and limit_mappings([], 1) == ()
    )


def test_generated_tables_keep_their_columns_and_each_field_its_place() -> None:
    """Whatever is known: every column is listed once, and no exclusive field is given twice by a decision."""
    random = Random(7)
    words = ["SKU", "Zorb", "Flim", "Title", "Price", "Qty NJ", "Width", "Image 1", "Cost", "", "Größe", "UPC"]
    fields = ["sku", "title", "cost", "quantity", "dimensions.width", "media", "gtin", None]
    for _ in range(300):
        known = []
        for _ in range(random.randrange(4)):
            headers = random.choices(words, k=random.randrange(1, 7))
            given = {header: random.choice(fields) for header in headers}
            known.append(_known(headers, given, own=random.random() < 0.3))
        headers = list(random.choice(known).headers) if known and random.random() < 0.5 else random.choices(words, k=6)
        mapping = _read(headers, *known, rows=(["A1"] * len(headers),))
        own = any(one.is_own and one.digest == compute_header_digest(headers) for one in known)
        places = [c.position for c in mapping.columns] + [u.position for u in mapping.unmapped]
        assert sorted(places) == list(range(len(headers)))
        assert mapping.headers == tuple(headers)
        assert mapping.missing == find_missing_data(mapping.columns, "catalogue")
        if not own:
            learned = [c for c in mapping.columns if c.tier == LEARNED and not allows_several_columns(c.field)]
            for column in learned:
                assert [c for c in mapping.columns if find_column_target(c) == find_column_target(column)] == [column]


def test_repeated() -> None:
    columns = [
        Column(0, "a", "sku", {}), Column(1, "b", "sku", {}), Column(2, "c", "media", {}), Column(3, "d", "media", {}),
        Column(4, "e", "quantity", {"location": "NJ"}), Column(5, "f", "quantity", {"location": "CA"}),
        Column(6, "g", "dimensions.width", {}), Column(7, "h", "dimensions.width", {}),
    ]  # fmt: skip
    assert [column.position for column in find_repeated_columns(columns)] == [1]


def test_what_is_missing_agrees_with_proposals() -> None:
    for headers in (["Zorb"], ["SKU"], ["Title"], ["SKU", "Qty"], ["UPC", "Price"]):
        for stream in ("catalogue", "stock"):
            proposed = propose_column_mapping(headers, [], FeedSettings("usd", stream=stream))
            assert proposed.missing == find_missing_data(proposed.columns, stream)
