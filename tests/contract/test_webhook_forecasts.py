"""Forecasts of a webhook endpoint, compared with a straightforward count (domain/webhooks/ports.py)."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from domain.catalogue import categories
from domain.events.model import TYPES, Event
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import Endpoint, Filters
from domain.webhooks.ports import WebhookStore
from tests.support import builders
from tests.support.backend import Backend
from tests.support.catalogues import add_products, random_product

pytestmark = pytest.mark.asyncio
CALL = builders.CALL


PRODUCT_NOUNS = {"product", "variant", "offer"}


def _is_wanted(endpoint: Endpoint, event: Event, category_of: dict[str, str | None]) -> bool:
    noun = event.type.split(".")[0]
    channels, filters = TYPES[event.type].channels, endpoint.filters
    if endpoint.event_types != ("*",) and event.type not in endpoint.event_types:
        return False
    if not channels:
        return False
    if channels == {"webhooks"}:
        return True
    if filters.catalogues and event.catalogue not in filters.catalogues:
        return False
    if filters.sources and noun in ("offer", "source") and event.source not in filters.sources:
        return False
    if filters.categories and noun in PRODUCT_NOUNS:
        product = event.subject if noun == "product" else event.data["product"]
        return bool(set(categories.path_ids(category_of.get(product))) & set(filters.categories))
    return True


def _count_posts(events: Sequence[tuple[datetime, Event]], window: int) -> int:
    if not window:
        return len(events)
    posts = 0
    for subject in {event.subject for _, event in events}:
        waiting: list[tuple[datetime, str]] = []
        for at, event in events:
            if event.subject != subject:
                continue
            changes = event.type.endswith((".updated", ".changed"))
            waits = waiting and waiting[0][0] + timedelta(seconds=window) > at
            sent_alone = waiting and not waiting[-1][1].endswith((".created", ".updated", ".changed"))
            if waits and changes and not sent_alone:
                waiting.append((at, event.type))
            else:
                posts, waiting = posts + 1, [(at, event.type)]
    return posts


def _create_random_events(
    dice: random.Random, products: Sequence[str], sources: Sequence[str], count: int
) -> list[Event]:
    subjects = [
        (noun, new_id(prefix), dice.choice(products))
        for noun, prefix in (("variant", "var"), ("offer", "ofr"))
        for _ in range(4)
    ]
    subjects += [("product", product, product) for product in products[:5]]
    subjects += [("source", source, None) for source in sources]
    kinds = {
        "product": ["created", "updated", "updated", "updated", "discontinued", "merged"],
        "variant": ["created", "updated", "updated", "merged"],
        "offer": ["created", "changed", "changed", "changed"],
        "source": ["degraded", "blocked"],
    }  # fmt: skip
    events = []
    for _ in range(count):
        noun, subject, product = dice.choice(subjects)
        if dice.random() < 0.08:
            name = dice.choice(["export.completed", "delivery.disabled", "webhook.test"])
            events.append(builders.event(new_id("exp"), type=name, data={"object": "export"}))
            continue
        data = {"id": subject, "product": product} if product and noun != "product" else {"id": subject}
        catalogue = dice.choice(["cat_a", "cat_b"])
        source = subject if noun == "source" else dice.choice(sources)
        name = f"{noun}.{dice.choice(kinds[noun])}"
        events.append(builders.event(subject, type=name, data=data, source=source, catalogue=catalogue))
    return events


def _create_random_endpoint(dice: random.Random, sources: Sequence[str], filed: Sequence[str]) -> Endpoint:
    types = tuple(dice.sample(sorted(name for name, kind in TYPES.items() if kind.channels), dice.randint(1, 9)))
    some = {
        "sources": tuple(dice.sample(list(sources), dice.randint(1, 2))) if dice.random() < 0.4 else (),
        "categories": tuple(dice.sample(list(filed), dice.randint(1, 3))) if dice.random() < 0.5 else (),
        "catalogues": (dice.choice(["cat_a", "cat_b", "cat_c"]),) if dice.random() < 0.3 else (),
    }
    return builders.endpoint(
        event_types=dice.choice([("*",), types]),
        filters=Filters(**some),
        coalesce_seconds=dice.choice([0, 1, 300]),
    )


async def test_forecasts_equal_a_direct_count(backend: Backend, tenant: Tenant) -> None:
    dice = random.Random(20261120)
    source = builders.source()
    made = [random_product(dice, source.id, source.catalogue, f"p{n}") for n in range(12)]
    category_of = {product.id: product.data.get("category") for product in made}
    await add_products(backend.uow, tenant, *made)
    sources = [source.id, new_id("src"), new_id("src")]
    products = [product.id for product in made] + [new_id("prod")]
    events: list[tuple[datetime, Event]] = []
    for _ in range(6):
        batch = _create_random_events(dice, products, sources, 50)
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[EventLog].append(batch)
            events += [(tx.now, event) for event in batch]
        await backend.pass_time(timedelta(seconds=dice.choice([0.2, 0.5])))
    filed = sorted({one for category in category_of.values() for one in categories.path_ids(category)})
    since = backend.now() - timedelta(days=7)
    for _ in range(60):
        endpoint = _create_random_endpoint(dice, sources, filed)
        async with backend.uow.begin_reading(tenant) as tx:
            found = await tx[WebhookStore].compute_forecast(endpoint, since)
        wanted = [(at, event) for at, event in events if _is_wanted(endpoint, event, category_of)]
        minutes = [at.replace(second=0, microsecond=0) for at, _ in wanted]
        peak = max((minutes.count(minute) for minute in set(minutes)), default=0)
        posts = _count_posts(wanted, endpoint.coalesce_seconds)
        assert (found.events, found.peak_per_minute, found.deliveries) == (len(wanted), peak, posts), endpoint
    async with backend.uow.begin_reading(tenant) as tx:
        late = await tx[WebhookStore].compute_forecast(builders.endpoint(), backend.now() + timedelta(seconds=1))
        assert (late.events, late.peak_per_minute, late.deliveries) == (0, 0, 0)


async def test_forecasts_include_own_events_only(backend: Backend, tenant: Tenant) -> None:
    other = await backend.tenant()
    for place in (other, replace(tenant, livemode=False)):
        async with backend.uow.begin(place, CALL) as tx:
            await tx[EventLog].append([builders.event("src_1")])
    async with backend.uow.begin_reading(tenant) as tx:
        found = await tx[WebhookStore].compute_forecast(builders.endpoint(), tx.now - timedelta(days=7))
    assert (found.days, found.events, found.deliveries) == (7, 0, 0)
