"""Which events go to an endpoint (docs/conventions.md#subscription)."""

from typing import Any

import pytest

from domain.events.model import TYPES, LoggedEvent
from domain.webhooks.model import Filters, depends_on_category, matches_endpoint
from tests.support import builders


def _event(type: str, **changes: Any) -> LoggedEvent:
    fields: dict[str, Any] = {
        "position": 1, "id": "evt_1", "type": type, "subject": "ofr_1", "product": "prod_1", "source": "src_1",
        "catalogue": "cat_1", "version": 2, "time": builders.MOMENT, "body": b"{}",
    }  # fmt: skip
    return LoggedEvent(**fields | changes)


def _wants(event: LoggedEvent, filed: bool = False, types: tuple[str, ...] = ("*",), **filters: Any) -> bool:
    return matches_endpoint(builders.endpoint(event_types=types, filters=Filters(**filters)), event, filed)


@pytest.mark.parametrize("type", sorted(TYPES))
def test_everything_is_everything_but_tests(type: str) -> None:
    assert _wants(_event(type)) == (type != "webhook.test")
    assert _wants(_event(type), types=("offer.changed",)) == (type == "offer.changed")


NARROWED_BY_SOURCE = {"offer.changed", "offer.created", "source.blocked", "source.degraded", "source.recovered"}


@pytest.mark.parametrize("type", sorted(set(TYPES) - {"webhook.test"}))
def test_sources_narrow_offers_and_sources_health(type: str) -> None:
    assert _wants(_event(type), sources=("src_1", "src_2"))
    assert _wants(_event(type, source="src_9"), sources=("src_1",)) == (type not in NARROWED_BY_SOURCE)
    assert _wants(_event(type, source=None), sources=("src_1",)) == (type not in NARROWED_BY_SOURCE)


@pytest.mark.parametrize("type", sorted(set(TYPES) - {"webhook.test"}))
def test_categories_narrow_products_variants_and_offers(type: str) -> None:
    narrowed = type.startswith(("product.", "variant.", "offer."))
    assert _wants(_event(type), filed=True, categories=("ctg_1",))
    assert _wants(_event(type), filed=False, categories=("ctg_1",)) != narrowed
    endpoint = builders.endpoint(filters=Filters(categories=("ctg_1",)))
    assert depends_on_category(endpoint, _event(type)) == narrowed
    assert not depends_on_category(builders.endpoint(), _event(type))


@pytest.mark.parametrize("type", sorted(set(TYPES) - {"webhook.test"}))
def test_catalogues_keep_what_has_to_do_with_them(type: str) -> None:
    only_webhooks = TYPES[type].channels == {"webhooks"}
    assert _wants(_event(type), catalogues=("cat_1",))
    assert _wants(_event(type, catalogue="cat_9"), catalogues=("cat_1",)) == only_webhooks
    assert _wants(_event(type, catalogue=None), catalogues=("cat_1",)) == only_webhooks


def test_every_filter_must_let_it_through() -> None:
    offer = _event("offer.changed")
    filters = {"sources": ("src_1",), "categories": ("ctg_1",), "catalogues": ("cat_1",)}
    assert _wants(offer, filed=True, **filters)
    for name in filters:
        filed = name != "categories"
        assert not _wants(offer, filed=filed, **filters | ({name: ("x_9",)} if filed else {}))
