"""Readers return a value or a problem for any text of a vendor, and raise no exception."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.catalogue.statements import OfferStatement, ProductStatement, VariantStatement
from domain.ingestion.columns import readers
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import map_declared_fields, propose_column_mapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.record_merge import RecordMerger
from domain.ingestion.records import parse_record
from domain.ingestion.values import (
    cartons,
    dates,
    dimensions,
    labels,
    media,
    money,
    quantities,
    rugs,
    stock,
    text,
    words,
)
from domain.ingestion.values.text import ParseResult
from domain.ingestion.vocabulary.header_meanings import count_known_headers, find_header_meanings

pytestmark = pytest.mark.slow

READERS: list[Callable[[str], ParseResult[Any]]] = [
    cartons.parse_boxes,
    words.parse_country,
    dates.parse_date,
    dimensions.parse_dimensions,
    words.parse_gtin,
    dates.parse_lead_time,
    quantities.parse_length,
    lambda value: quantities.parse_length(value, "in"),
    lambda value: dimensions.parse_dimensions(value, "in", labels.BED),
    lambda value: money.parse_money(value, "usd"),
    lambda value: money.parse_money(value, "eur", "comma"),
    lambda value: money.parse_money(value, "jpy", "dot"),
    words.parse_sturdy_compliance,
    words.parse_discontinued_status,
    text.parse_line,
    text.parse_multiline_text,
    rugs.parse_rug_size,
    rugs.parse_shape,
    stock.parse_stock,
    stock.parse_availability,
    lambda value: quantities.parse_weight(value, "lb"),
    words.parse_boolean,
    words.parse_components,
    words.parse_features,
    words.parse_freight_class,
    words.parse_materials,
    words.parse_tags,
    words.parse_count,
]
VENDOR = st.text(alphabet="0123456789 .,/-+'\"xXWDHLinftcmgkb$€()|:;½″²٣éÃ\t\n\x9d", max_size=40)
ANY = st.one_of(VENDOR, st.text(max_size=60))
CELL = st.one_of(
    st.none(),
    ANY,
    st.integers(-(10**20), 10**20),
    st.booleans(),
    st.decimals(allow_nan=False, allow_infinity=False, places=4),
    st.lists(ANY, max_size=3),
    st.dictionaries(
        st.sampled_from(["name", "value", "unit", "url", "amount", "currency", "width", "x"]), ANY, max_size=3
    ),
)
HEADERS = [
    "Handle", "SKU", "UPC", "Title", "Description", "Category", "Tags", "Color", "Size", "Material", "Dimensions", "Width (in)",
    "Weight", "Price", "MSRP", "Sale Price", "Currency", "Qty", "Availability", "ETA", "Qty On Order", "Lead Time", "Image 1",
    "Image Position", "Option1 Name", "Option1 Value", "Status", "Discontinued", "Rug Size", "Pile Height", "Number of Boxes",
    "Carton Weight", "Carton Dimensions", "Features", "Packages details", "Parts for Group Items", "Weight Unit", "Warehouse",
    "Country of Origin", "Prop 65", "STURDY", "Freight Class", "Length", "Variant Image", "Shape", "Construction",
]  # fmt: skip
relaxed = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("read", READERS)
@relaxed
@given(value=ANY)
def test_readers_accept_any_text(read: Callable[[str], ParseResult[Any]], value: str) -> None:
    reading = read(value)
    assert all(fault.problem and fault.detail for fault in reading.faults)


@relaxed
@given(value=ANY)
def test_texts_and_lists_accept_any_text(value: str) -> None:
    assert isinstance(text.clean_line(value), str)
    assert isinstance(text.strip_markup(value), str)
    assert all(
        url.startswith(("http://", "https://", "HTTP")) or "://" in url
        for url in media.parse_image_urls(value).value or ()
    )
    media.parse_image_urls(value, "https://cdn.vendor.example/")
    stock.split_stock_word(value)
    readers.parse_attributes(value)


@relaxed
@given(header=ANY)
def test_headers_accept_any_text(header: str) -> None:
    assert all(sense.field for sense in find_header_meanings(header))
    assert count_known_headers([header]) in (0, 1)


@relaxed
@given(
    rows=st.lists(st.lists(CELL, max_size=len(HEADERS) + 2), min_size=1, max_size=3),
    currency=st.sampled_from([None, "usd", "eur", "kwd"]),
    stream=st.sampled_from(["catalogue", "stock"]),
)
def test_rows_of_any_values_become_a_statement(rows: list[list[Any]], currency: str | None, stream: str) -> None:
    context = FeedSettings(currency=currency, stream=stream)
    plan = ReadPlan(propose_column_mapping(HEADERS, rows, context), context)
    for row in rows:
        plan.read_product_key(row)
        plan.read_variant_key(row)
    statement, problems = normalise_rows("k", [(2 + at, row) for at, row in enumerate(rows)], plan)
    assert statement.key == "k"
    assert all(problem.line is not None for problem in problems)


@relaxed
@given(headers=st.lists(ANY, max_size=8), given_fields=st.lists(st.one_of(st.none(), ANY), max_size=8))
def test_mappings_accept_any_headers(headers: list[str], given_fields: list[str | None]) -> None:
    mapping = propose_column_mapping(headers, [headers], FeedSettings())
    places = sorted([c.position for c in mapping.columns] + [u.position for u in mapping.unmapped])
    assert places == list(range(len(headers)))
    assert len(map_declared_fields(headers, given_fields).headers) == len(headers)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.decimals(allow_nan=False, allow_infinity=False), ANY),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(ANY, inner, max_size=3)),
    max_leaves=6,
)
PRODUCT = st.dictionaries(
    st.sampled_from(["external_id", "title", "tags", "media", "compliance", "odd", "discontinued"]), JSON
)
OFFER = st.dictionaries(st.sampled_from(["location", "price", "cost", "quantity", "availability", "incoming"]), JSON)
VARIANT = st.fixed_dictionaries(
    {"external_id": ANY},
    optional=dict.fromkeys(
        ("gtin", "dimensions", "weight", "axes", "cartons", "rug", "components", "freight_class"), JSON
    )
    | {"offers": st.one_of(JSON, st.lists(OFFER, max_size=3))},
)


@relaxed
@given(
    record=st.one_of(JSON, st.fixed_dictionaries({"product": PRODUCT, "variants": st.one_of(JSON, st.lists(VARIANT))}))
)
def test_records_of_any_values_are_parsed(record: Any) -> None:
    statement, problems = parse_record(record, FeedSettings())
    assert statement is not None or problems
    if statement is not None:
        once = RecordMerger(None, lambda _: None).merge([statement])
        twice = RecordMerger(None, lambda _: None).merge([statement, statement])
        assert once == twice, "applying a record again changes nothing"
        assert once is None or _contains_no_null(once)


def _contains_no_null(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_contains_no_null(item) for item in value.values())
    if isinstance(value, list):
        return all(map(_contains_no_null, value))
    if isinstance(value, ProductStatement | VariantStatement | OfferStatement):
        fields = (getattr(value, name) for name in value.__slots__)
        return all(_contains_no_null(field) for field in fields if field is not None)  # a field may be unstated
    return value is not None


def test_numbers_in_cells_become_plain_text() -> None:
    assert text.convert_to_text(Decimal("101.0")) == "101"
    assert text.convert_to_text(Decimal("1E+3")) == "1000"
    assert text.convert_to_text({"name": "Acme", "id": 4}) == "Acme"
