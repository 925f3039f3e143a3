"""Events that an endpoint receives (docs/conventions.md#subscription)."""

from typing import Any

import pytest

from domain.events.model import TYPES, LoggedEvent
from domain.webhooks.model import Filters, depends_on_category, matches_endpoint
from tests.support import builders


def _create_event(type: str, **changes: Any) -> LoggedEvent:
    fields: dict[str, Any] = {
        "position": 1, "id": "evt_1", "type": type, "subject": "ofr_1", "product": "prod_1", "source": "src_1",
        "catalogue": "cat_1", "version": 2, "time": builders.MOMENT, "body": b"{}",
    }  # fmt: skip
    return LoggedEvent(**fields | changes)


def _matches(event: LoggedEvent, filed: bool = False, types: tuple[str, ...] = ("*",), **filters: Any) -> bool:
    return matches_endpoint(builders.endpoint(event_types=types, filters=Filters(**filters)), event, filed)


@pytest.mark.parametrize("type", sorted(TYPES))
def test_all_events_except_tests_match_by_default(type: str) -> None:
    assert _matches(_create_event(type)) == (type != "webhook.test")
    assert _matches(_create_event(type), types=("offer.changed",)) == (type == "offer.changed")


NARROWED_BY_SOURCE = {"offer.changed", "offer.created", "source.blocked", "source.degraded", "source.recovered"}


@pytest.mark.parametrize("type", sorted(set(TYPES) - {"webhook.test"}))
def test_sources_filter_offers_and_the_health_of_sources(type: str) -> None:
    assert _matches(_create_event(type), sources=("src_1", "src_2"))
    assert _matches(_create_event(type, source="src_9"), sources=("src_1",)) == (type not in NARROWED_BY_SOURCE)
    assert _matches(_create_event(type, source=None), sources=("src_1",)) == (type not in NARROWED_BY_SOURCE)


@pytest.mark.parametrize("type", sorted(set(TYPES) - {"webhook.test"}))
def test_categories_filter_products_variants_and_offers(type: str) -> None:
    narrowed = type.startswith(("product.", "variant.", "offer."))
    assert _matches(_create_event(type), filed=True, categories=("ctg_1",))
    assert _matches(_create_event(type), filed=False, categories=("ctg_1",)) != narrowed
    endpoint = builders.endpoint(filters=Filters(categories=("ctg_1",)))
    assert depends_on_category(endpoint, _create_event(type)) == narrowed
    assert not depends_on_category(builders.endpoint(), _create_event(type))


@pytest.mark.parametrize("type", sorted(set(TYPES) - {"webhook.test"}))
def test_catalogues_filter_events_of_the_catalogue(type: str) -> None:
    only_webhooks = TYPES[type].channels == {"webhooks"}
    assert _matches(_create_event(type), catalogues=("cat_1",))
    assert _matches(_create_event(type, catalogue="cat_9"), catalogues=("cat_1",)) == only_webhooks
    assert _matches(_create_event(type, catalogue=None), catalogues=("cat_1",)) == only_webhooks


def test_every_filter_must_match() -> None:
    offer = _create_event("offer.changed")
    filters = {"sources": ("src_1",), "categories": ("ctg_1",), "catalogues": ("cat_1",)}
    assert _matches(offer, filed=True, **filters)
    for name in filters:
        filed = name != "categories"
        assert not _matches(offer, filed=filed, **filters | ({name: ("x_9",)} if filed else {}))
