"""Webhook endpoints and deliveries in memory."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from adapters.memory.catalogue_overlay import PRODUCTS
from adapters.memory.events import EVENTS, KeptEvent, logged
from adapters.memory.table import Table, Transaction
from domain.changes.model import FeedPosition
from domain.kernel.errors import NotFound, PreconditionFailed
from domain.kernel.paging import Page, PageRequest
from domain.webhooks.model import (
    Delivery,
    DeliveryFilter,
    DeliveryStatus,
    Endpoint,
    Forecast,
    Recovery,
    SealedSecrets,
    matches,
)
from domain.webhooks.payload import peak_per_minute, posts
from ports.signals import Channel, Signal


@dataclass(frozen=True, slots=True)
class KeptEndpoint:
    """An endpoint with its sealed secrets and the position up to which it has been served."""

    endpoint: Endpoint
    secrets: SealedSecrets
    checkpoint: FeedPosition


ENDPOINTS: Final = Table[KeptEndpoint]("webhook_endpoints", lambda kept: kept.endpoint.id)
DELIVERIES: Final = Table[Delivery]("webhook_deliveries", lambda delivery: delivery.id)


class MemoryWebhooks:
    """WebhookStore."""

    def __init__(self, transaction: Transaction, below: Callable[[str], frozenset[str]]) -> None:
        self._transaction, self._below = transaction, below
        self._endpoints = transaction.rows(ENDPOINTS)
        self._deliveries = transaction.rows(DELIVERIES)

    async def count(self) -> int:
        await self._transaction.lock()
        return len(self._endpoints.where())

    async def get(self, id: str, *, lock: bool = False) -> Endpoint | None:
        if lock:
            await self._transaction.lock()
        kept = self._endpoints.get(id)
        return kept.endpoint if kept else None

    async def add(self, endpoint: Endpoint, secrets: SealedSecrets, checkpoint: FeedPosition) -> None:
        await self._endpoints.add(KeptEndpoint(endpoint, secrets, checkpoint))
        self._notify(endpoint.id)

    async def save(
        self, endpoint: Endpoint, *, expected_version: int | None = None, checkpoint: FeedPosition | None = None
    ) -> None:
        await self._transaction.lock()
        kept = self._kept(endpoint.id)
        stored = kept.endpoint.version
        if expected_version not in (None, stored):
            raise PreconditionFailed(f"The endpoint is at version {stored} by now.")
        await self._endpoints.put(
            replace(kept, endpoint=endpoint, checkpoint=kept.checkpoint if checkpoint is None else checkpoint)
        )
        self._notify(endpoint.id)

    async def remove(self, id: str) -> None:
        await self.fail_open(id, self._transaction.now)
        await self._endpoints.remove(id)
        self._notify(id)

    async def page(self, page_request: PageRequest) -> Page[Endpoint]:
        page = self._endpoints.page(page_request)
        return Page(tuple(kept.endpoint for kept in page.items), page.has_more, page.next_key)

    async def secrets(self, id: str) -> SealedSecrets | None:
        kept = self._endpoints.get(id)
        return kept.secrets if kept else None

    async def seal(self, id: str, secrets: SealedSecrets) -> None:
        await self._transaction.lock()
        await self._endpoints.put(replace(self._kept(id), secrets=secrets))
        self._notify(id)

    async def delivery(self, endpoint: str, id: str, *, lock: bool = False) -> Delivery | None:
        if lock:
            await self._transaction.lock()
        found = self._deliveries.get(id)
        return found if found and found.endpoint == endpoint else None

    async def deliveries(self, wanted: DeliveryFilter, page_request: PageRequest) -> Page[Delivery]:
        return self._deliveries.page(page_request, wanted.matches)

    async def add_delivery(self, delivery: Delivery) -> None:
        await self._deliveries.add(delivery)
        self._notify(delivery.endpoint)

    async def resend(self, delivery: Delivery, at: datetime) -> None:
        await self._deliveries.put(delivery.resent(at))
        self._notify(delivery.endpoint)

    async def recover(self, endpoint: str, since: datetime, until: datetime, at: datetime, most: int) -> Recovery:
        await self._transaction.lock()
        failed = self._deliveries.where(
            lambda one: (
                one.endpoint == endpoint and one.status == DeliveryStatus.FAILED and since <= one.created_at <= until
            )
        )
        again = sorted(failed, key=lambda one: one.id)[: max(0, most - len(self._open(endpoint)))]
        for delivery in again:
            await self._deliveries.put(delivery.resent(at))
        if again:
            self._notify(endpoint)
        return Recovery(len(again), len(again) < len(failed))

    async def wake(self, id: str) -> None:
        self._notify(id)

    async def fail_open(self, endpoint: str, at: datetime) -> int:
        await self._transaction.lock()
        waiting = self._open(endpoint)
        for delivery in waiting:
            await self._deliveries.put(delivery.failed_open(at))
        self._notify(endpoint)
        return len(waiting)

    def _open(self, endpoint: str) -> list[Delivery]:
        return self._deliveries.where(lambda one: one.endpoint == endpoint and one.is_open)

    async def forecast(self, endpoint: Endpoint, since: datetime) -> Forecast:
        kept = self._transaction.rows(EVENTS).sorted(lambda one: one.at >= since and self._wanted(endpoint, one))
        ordered = sorted(kept, key=lambda one: (one.event.subject, one.position))
        happenings = [(one.event.subject, one.event.type, one.at) for one in ordered]
        return Forecast(
            days=(self._transaction.now - since).days,
            events=len(kept),
            peak_per_minute=peak_per_minute(one.at for one in kept),
            deliveries=posts(happenings, endpoint.coalesce_seconds),
        )

    def _wanted(self, endpoint: Endpoint, kept: KeptEvent) -> bool:
        return matches(endpoint, logged(kept), self._filed(endpoint, kept.event.product))

    def _filed(self, endpoint: Endpoint, product: str | None) -> bool:
        found = self._transaction.rows(PRODUCTS).get(product) if product else None
        category = found.data.get("category") if found else None
        return category is not None and any(category in self._below(one) for one in endpoint.filters.categories)

    def _kept(self, id: str) -> KeptEndpoint:
        kept = self._endpoints.get(id)
        if kept is None:
            raise NotFound
        return kept

    def _notify(self, endpoint: str) -> None:
        self._transaction.channels.add((Channel.WEBHOOKS, Signal(self._transaction.tenant, endpoint).payload))
