"""Organisation with content on every console page, whose texts contain injection attempts."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from domain.catalogue.model import Product
from domain.changes.model import FeedPosition
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.runs.ports import RunStore
from domain.sources.model import StatusReason
from domain.sources.ports import SourceStore
from domain.webhooks.model import EncryptedSecrets
from domain.webhooks.ports import WebhookStore
from tests.support import builders
from tests.support.catalogues import add_products

HOSTILE = (
    "<script>evil()</script>", '"><img src=x onerror=evil()>', "'><svg/onload=evil()>", "{{ 7*7 }}{% raw %}", "javascript:evil()",
    "</title><script>evil()</script>", "\u202egnp.exe", "a\x01b\x0b", "&lt;b&gt;&amp;", "<!-- evil -->", "]]><x>", "é" * 400, "x" * 3000,
)  # fmt: skip


@dataclass
class SeededOrganisation:
    """Created objects."""

    tenant: Tenant
    products: list[Product]
    sources: list[str]


async def seed_console(world: Any, texts: tuple[str, ...] = ("Oak table",), org: str = "Fjord") -> SeededOrganisation:
    """Create healthy and failing sources, runs, products with offers of both, events and failing endpoints."""
    now = world.clock.now()
    owner = world.orgs[org]
    tenant, catalogue = Tenant(owner.id, True), owner.get_catalogue_id(True)
    first = builders.source(
        name=f"First {texts[0]}", catalogue=catalogue, catalogue_at=now, created_at=now, updated_at=now
    )
    second = builders.source(
        name=f"Second {texts[-1]}"[:200], catalogue=catalogue, status="degraded", status_reason=StatusReason("fetch_failed", f"It said {texts[0]}"),
    )  # fmt: skip
    runs = [
        builders.run(first.id, status=status, created_at=now - timedelta(days=days))
        for days, status in ((0, "succeeded"), (1, "failed"), (1, "succeeded"), (3, "failed"))
    ]
    async with world.uow.begin(tenant, builders.CALL) as tx:
        for source in (first, second):
            await tx[SourceStore].add(source)
        for run in runs:
            await tx[RunStore].add(run)
        endpoint = builders.endpoint(url="https://receiver.example/<b>", failing_since=now - timedelta(hours=2))
        await tx[WebhookStore].add(endpoint, EncryptedSecrets(b"sealed"), FeedPosition())
    products = [_product(first.id, second.id, catalogue, number, text, now) for number, text in enumerate(texts)]
    await add_products(world.uow, tenant, *products, now=now)
    await _log(world, tenant, products, now)
    return SeededOrganisation(tenant, products, [first.id, second.id])


def _product(first: str, second: str, catalogue: str, number: int, text: str, now: Any) -> Product:
    data = {
        "title": text, "brand": text[:60], "description": text, "collection": text, "tags": [text], "category_path": ["Tables", text],
        "category": "ctg_7ZTEQ9MwZWIriumoBTE5a5", "compliance": {"country_of_origin": text[:20], "prop65_warning": True},
        "media": [{"url": "https://cdn.example/a.jpg", "role": "hero", "alt": text}, {"url": text, "role": "detail"}, {"url": "https://x;script-src *.evil/", "alt": ""}],
    }  # fmt: skip
    product = builders.product(first, catalogue, f"key-{number}-{text[:40]}", data=data)
    for name in ("Oak", "Walnut"):
        length = {"hundredths_in": 3150, "given": {"value": 80.0, "unit": "cm"}}
        facts = {
            "sku": f"{name[0]}X-{number}",
            "title": f"{name} {text}",
            "materials": [text],
            "dimensions": {"width": length, "depth": length},
        }
        variant = builders.variant(product, f"{name}-{number}", data=facts)
        for source, location, price in ((first, "main", 49900), (second, text[:30] or "east", 45900)):
            builders.offer(
                variant, source=source, location=location, observed_at=now,
                data={"currency": "eur", "price": price, "quantity": 4, "availability": "low_stock", "lead_time_days": 3, "incoming": [{"quantity": 2, "eta": "2026-12-24"}]},
            )  # fmt: skip
    return product


async def _log(world: Any, tenant: Tenant, products: list[Product], now: Any) -> None:
    """Append price changes of each product's first offer to the event log."""
    for product in products[:20]:
        offer = product.variants[0].offers[0]
        for old, new in ((52900, 51900), (51900, 49900)):
            fields = [{"path": "price", "old": old, "new": new}, {"path": "quantity", "old": old // 1000, "new": 4}]
            data = {
                "id": offer.id,
                "variant": offer.variant,
                "product": product.id,
                "source": offer.source,
                "fields": fields,
            }
            async with world.uow.begin(tenant, builders.CALL) as tx:
                await tx[EventLog].append([builders.event(offer.id, id=new_id("evt"), type="offer.changed", data=data)])
