"""A field of the catalogue changes only if a record of any stream states the field."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.catalogue.differences import merge_offer_data
from domain.catalogue.model import STREAM_BITS, Product, Stream
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import OfferStatement, ProductStatement, VariantStatement
from domain.ingestion.record_merge import RecordMerger
from tests.support import builders

SOURCE = builders.source()
NOW = datetime(2026, 5, 1, tzinfo=UTC)
LENGTH = st.integers(1, 9).map(lambda n: {"hundredths_in": n, "given": {"value": n, "unit": "in"}})


def _optional_fields(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def _add_currency(offer: dict[str, Any]) -> dict[str, Any]:
    return {**offer, "currency": "usd"} if offer.keys() & {"cost", "msrp", "map", "price", "compare_at"} else offer


SIDES = _optional_fields(width=LENGTH, height=LENGTH).filter(bool)
NUMBER = st.integers(1, 9)
STOCK = _optional_fields(
    quantity=NUMBER,
    lead_time_days=NUMBER,
    availability=st.sampled_from(["in_stock", "backorder"]),
    incoming=st.lists(st.fixed_dictionaries({"quantity": NUMBER}), min_size=1, max_size=2),
)
OFFER = st.builds(
    lambda stock, prices: _add_currency({**stock, **prices}),
    STOCK,
    _optional_fields(cost=NUMBER, msrp=NUMBER, map=NUMBER, price=NUMBER, compare_at=st.integers(10, 19)),
)
VARIANT = _optional_fields(
    colour=st.sampled_from("abc"),
    dimensions=SIDES,
    cartons=st.lists(st.fixed_dictionaries({"count": NUMBER}), min_size=1, max_size=2),
    components=st.lists(st.fixed_dictionaries({"quantity": NUMBER}), min_size=1, max_size=2),
    rug=_optional_fields(shape=st.sampled_from("ab"), size_text=st.sampled_from("ab")).filter(bool),
    axes=_optional_fields(Size=st.sampled_from("ab"), Wood=st.sampled_from("ab")).filter(bool),
    media=st.lists(st.fixed_dictionaries({"url": st.sampled_from("ab")}), min_size=1, max_size=2),
)
PRODUCT = _optional_fields(
    title=st.sampled_from("abc"),
    description=st.sampled_from("abc"),
    category=st.sampled_from(["sofas", "chairs"]),
    compliance=_optional_fields(prop65_warning=st.booleans(), country_of_origin=st.sampled_from(["US", "DE"])).filter(
        bool
    ),
    tags=st.lists(st.sampled_from("abc"), min_size=1, unique=True),
)
CATALOGUE = st.tuples(st.just(Stream.CATALOGUE), PRODUCT, VARIANT, OFFER)
STATEMENT = CATALOGUE | st.tuples(st.just(Stream.STOCK), st.just({}), st.just({}), OFFER.filter(bool))
Statement = tuple[Stream, dict[str, Any], dict[str, Any], dict[str, Any]]


def _apply_statement(
    product: Product | None, statement: Statement, complete: bool = True
) -> tuple[Product, CatalogueReconciler]:
    stream, data, variant, offer = statement
    products = {} if product is None else {product.key: product}
    reconciler = CatalogueReconciler(SOURCE, "run_1", stream, NOW, complete, products, lambda key: True)
    stated = VariantStatement("V", dict(variant), [OfferStatement("default", dict(offer))])  # type: ignore[arg-type, typeddict-item]
    if stream == Stream.STOCK:
        assert product is not None
        reconciler.apply_stock(product, stated)
        return product, reconciler
    return reconciler.apply_product(ProductStatement("P", dict(data), [stated])), reconciler  # type: ignore[arg-type, typeddict-item]


def _flatten(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in data.items():
        nested = name in ("dimensions", "compliance", "rug", "axes")
        found |= _flatten(value, f"{name}.") if nested else {prefix + name: value}
    return found


@given(CATALOGUE, st.lists(STATEMENT, max_size=8))
def test_each_field_has_the_last_stated_value(first: Statement, later: list[Statement]) -> None:
    product = None
    expected: list[dict[str, Any]] = [{}, {}, {"availability": "unknown"}]
    for statement in (first, *later):
        product, _ = _apply_statement(product, statement)
        expected = [known | _flatten(data) for known, data in zip(expected, statement[1:], strict=True)]
        (variant,) = product.variants
        (offer,) = variant.offers
        assert [_flatten(product.data), _flatten(variant.data), dict(offer.data)] == expected


@given(CATALOGUE, st.lists(STATEMENT, max_size=4))
def test_repeating_a_statement_changes_nothing(first: Statement, later: list[Statement]) -> None:
    product = None
    for statement in (first, *later):
        product, _ = _apply_statement(product, statement)
    product, reconciler = _apply_statement(product, (first, *later)[-1])
    assert not reconciler.events
    assert not reconciler.counts


def test_a_returning_offer_keeps_its_lead_time_but_not_its_stock() -> None:
    statement: Statement = (
        Stream.CATALOGUE,
        {},
        {},
        {"currency": "usd", "price": 5, "quantity": 4, "lead_time_days": 9},
    )
    product, reconciler = _apply_statement(None, statement)
    (offer,) = product.variants[0].offers
    reconciler.withdraw_offers(product, [offer])
    assert (offer.data["quantity"], offer.stated_streams) == (0, 0)
    _apply_statement(product, (Stream.CATALOGUE, {}, {}, {"currency": "usd", "price": 6}))
    assert offer.data == {"currency": "usd", "price": 6, "lead_time_days": 9, "availability": "unknown"}
    assert offer.stated_streams == STREAM_BITS[Stream.CATALOGUE]


def test_prices_in_another_currency_are_removed_and_reported() -> None:
    product, _ = _apply_statement(
        None, (Stream.CATALOGUE, {}, {}, {"currency": "usd", "cost": 5, "price": 9, "lead_time_days": 3})
    )
    product, reconciler = _apply_statement(product, (Stream.STOCK, {}, {}, {"currency": "eur", "price": 8}))
    (offer,) = product.variants[0].offers
    assert offer.data == {"currency": "eur", "price": 8, "lead_time_days": 3, "availability": "unknown"}
    assert [problem.problem for problem in reconciler.problems] == ["conflict"]


def test_an_item_is_discontinued_only_while_its_rows_state_it() -> None:
    product, _ = _apply_statement(None, (Stream.CATALOGUE, {"title": "a"}, {"discontinued": True, "colour": "a"}, {}))
    product, _ = _apply_statement(product, (Stream.CATALOGUE, {"title": "b"}, {}, {}))
    assert product.variants[0].data == {"colour": "a"}
    assert product.variants[0].status == "active"


def test_a_pushed_price_restores_a_withdrawn_offer_with_its_lead_time() -> None:
    statement: Statement = (
        Stream.CATALOGUE,
        {},
        {},
        {"currency": "usd", "price": 5, "quantity": 4, "lead_time_days": 9},
    )
    product, reconciler = _apply_statement(None, statement)
    reconciler.withdraw_offers(product, product.variants[0].offers)
    record = ProductStatement(
        "P", {}, [VariantStatement("V", {}, [OfferStatement("default", {"currency": "usd", "price": 6})])]
    )  # type: ignore[typeddict-item]
    merged = RecordMerger(product, lambda _: product.variants[0]).merge([record])
    assert merged is not None
    (offer,) = merged.variants[0].offers
    assert offer.data == {"currency": "usd", "price": 6, "lead_time_days": 9}


def test_a_comparison_price_is_above_the_price() -> None:
    held = {"currency": "usd", "price": 8, "compare_at": 10}
    assert merge_offer_data(held, {"price": 12}) == ({"currency": "usd", "price": 12}, [])
    assert merge_offer_data(held, {"price": 9}) == ({"currency": "usd", "price": 9, "compare_at": 10}, [])
    assert merge_offer_data(held, {"compare_at": 7}) == ({"currency": "usd", "price": 8}, [])
