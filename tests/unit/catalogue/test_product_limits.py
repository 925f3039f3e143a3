"""Limits of a product that grows over many runs and pushes."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from domain.catalogue.model import Product, Stream
from domain.catalogue.product_limits import compute_size
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import OfferStatement, ProductStatement, VariantStatement
from domain.kernel.bounds import MAX_OFFERS, MAX_STORED_VARIANTS, PRODUCT_BYTES
from domain.kernel.problems import ProblemKind
from tests.support import builders

SOURCE = builders.source()
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def _push_variants(
    product: Product | None, variants: Iterable[VariantStatement]
) -> tuple[Product, CatalogueReconciler]:
    """Apply one push of the variants."""
    products = {} if product is None else {product.key: product}
    reconciler = CatalogueReconciler(SOURCE, "run_1", Stream.CATALOGUE, NOW, False, products, lambda key: True, line=3)
    return reconciler.apply_product(ProductStatement("P-1", {"title": "Sofa"}, list(variants))), reconciler


def _build_variants(first: int, count: int, text: str = "", offers: int = 1) -> list[VariantStatement]:
    data: dict[str, Any] = {"title": text} if text else {}
    return [
        VariantStatement(
            f"V-{number}",
            {**data, "sku": f"V-{number}"},  # type: ignore[typeddict-item]
            [OfferStatement(f"Store {at}", {"quantity": 1}) for at in range(offers)],
        )
        for number in range(first, first + count)
    ]


def test_consecutive_pushes_fill_a_product_up_to_the_limit() -> None:
    product = None
    reported = []
    for push in range(7):
        product, reconciler = _push_variants(product, _build_variants(push * 1_000, 1_000))
        reported.append([(problem.field, problem.problem, problem.line) for problem in reconciler.problems])
    assert product is not None
    assert len(product.variants) == MAX_STORED_VARIANTS
    assert reported == [[]] * 5 + [[("variants", ProblemKind.TOO_LONG, 3)]] * 2


def test_repeating_a_statement_changes_nothing_and_reports_the_same_problems() -> None:
    product, _ = _push_variants(None, _build_variants(0, MAX_STORED_VARIANTS))
    product, first = _push_variants(product, _build_variants(MAX_STORED_VARIANTS - 5, 10))
    before = [(variant.key, variant.version) for variant in product.variants]
    product, again = _push_variants(product, _build_variants(MAX_STORED_VARIANTS - 5, 10))
    assert [event.type for event in (*first.events, *again.events)] == []
    assert first.problems == again.problems
    assert len(again.problems) == 1
    assert "5 variants" in again.problems[0].detail
    assert [(variant.key, variant.version) for variant in product.variants] == before


def test_bytes_of_new_and_growing_variants_are_bounded() -> None:
    text = "x" * 60_000
    product, reconciler = _push_variants(None, _build_variants(0, 400, text))
    assert compute_size(product) <= PRODUCT_BYTES
    assert reconciler.problems[0].field == "variants"
    small, _ = _push_variants(None, _build_variants(0, 400))
    grown, reconciler = _push_variants(small, _build_variants(0, 400, text))
    assert len(grown.variants) == 400
    assert compute_size(grown) <= PRODUCT_BYTES
    assert [problem.field for problem in reconciler.problems] == ["variants"]
    _same, again = _push_variants(grown, _build_variants(0, 400, text))
    assert [event.type for event in again.events] == []


def test_offers_are_bounded_by_number_and_bytes() -> None:
    product, _ = _push_variants(None, _build_variants(0, 1, offers=MAX_OFFERS))
    further = [OfferStatement(f"Further {at}", {"quantity": 1}) for at in range(3)]
    product, reconciler = _push_variants(product, [VariantStatement("V-0", {"sku": "V-0"}, further)])
    assert len(product.variants[0].offers) == MAX_OFFERS
    (problem,) = reconciler.problems
    assert problem.field == "offers"
    assert "3 offers" in problem.detail
    wide, reconciler = _push_variants(None, _build_variants(0, 100, offers=MAX_OFFERS))
    assert compute_size(wide) <= PRODUCT_BYTES
    assert reconciler.problems[0].field == "offers"


def test_incoming_stock_is_bounded_by_bytes() -> None:
    product, _ = _push_variants(None, _build_variants(0, 60, offers=300))
    incoming: Any = [{"quantity": 1, "eta": "2027-01-01"}] * 100
    stated = [
        VariantStatement(f"V-{number}", {"sku": f"V-{number}"}, [
            OfferStatement(f"Store {at}", {"quantity": 1, "incoming": incoming}) for at in range(300)
        ])
        for number in range(60)
    ]  # fmt: skip
    product, reconciler = _push_variants(product, stated)
    assert compute_size(product) <= PRODUCT_BYTES
    assert [problem.field for problem in reconciler.problems] == ["incoming"]
    product, again = _push_variants(product, stated)
    assert [event.type for event in again.events] == []


def test_two_thousand_variants_at_eight_locations_are_accepted() -> None:
    product, reconciler = _push_variants(
        None, _build_variants(0, 2_048, "An oak sofa, three seats, in grey " * 4, offers=8)
    )
    assert reconciler.problems == []
    assert len(product.variants) == 2_048
