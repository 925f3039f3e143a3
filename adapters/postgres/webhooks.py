"""Webhook endpoints and deliveries in PostgreSQL."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString

from adapters.postgres.session import Session
from adapters.postgres.stores import LOOKED, TenantStore, first, page_of, rendered, statements
from adapters.postgres.table import Spread, Table, TableStore
from domain.catalogue.search import category_term
from domain.changes.model import FeedPosition
from domain.kernel.paging import Page, PageRequest
from domain.webhooks.model import (
    EVERY_TYPE,
    FILED,
    OF_A_SOURCE,
    ON_REQUEST,
    WEBHOOKS_ONLY,
    Delivery,
    DeliveryFilter,
    DeliveryStatus,
    Endpoint,
    Filters,
    Forecast,
    Recovery,
    Rotation,
    SealedSecrets,
    shard_of,
)
from domain.webhooks.payload import posts
from domain.webhooks.ports import WebhookStore
from ports.signals import Signal

CHANNEL = "joinery_webhooks"
ENDPOINTS = Table(
    Endpoint,
    "webhook_endpoints",
    exceptions={
        "filters": Spread(Filters, {name: name for name in ("sources", "categories", "catalogues")}),
        "rotation": Spread(Rotation, {"expires_at": "rotation_expires_at", "last4": "previous_last4"}),
    },
    beside={
        "shard": 0,
        "secret": b"",
        "previous_secret": None,
        "checkpoint": 0,
        "network_epoch": 0,
        "network_checkpoint": 0,
    },
)
DELIVERIES = Table(Delivery, "webhook_deliveries", computed={"made": "jsonb_array_length(attempts)"})
SQL = statements(
    "webhooks",
    delivery=DELIVERIES.columns(),
    deliveries_walked=statements("webhooks")["deliveries_walked"],
    looked=str(LOOKED),
)
_BEYOND = "~"
"""Greater than any id."""
_CATALOGUES: Final[LiteralString] = " AND (e.catalogue = ANY(%(catalogues)s) OR e.type = ANY(%(webhooks_only)s))"
_SOURCES: Final[LiteralString] = " AND (NOT (e.type ^@ ANY(%(of_a_source)s)) OR e.source = ANY(%(sources)s))"
_CATEGORIES: Final[LiteralString] = (
    " AND (NOT (e.type ^@ ANY(%(filed)s)) OR EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s"
    " AND t.livemode = %(livemode)s AND t.product = e.product AND t.term = ANY(%(terms)s)))"
)
_APART: Final[LiteralString] = ", near AS (SELECT *, false AS close FROM wanted) "
_CLOSE: Final[LiteralString] = (
    ", near AS (SELECT *, coalesce(time - lag(time) OVER same < %(window)s OR lead(time) OVER same - time < %(window)s,"
    " false) AS close FROM wanted WINDOW same AS (PARTITION BY subject ORDER BY position)) "
)


def kept_of(checkpoint: FeedPosition) -> dict[str, int]:
    """Return the columns of an endpoint's checkpoint."""
    numbers = checkpoint.numbers
    return dict(zip(("checkpoint", "network_epoch", "network_checkpoint"), numbers, strict=True))


class PostgresWebhookStore(TenantStore, WebhookStore):
    """Webhook endpoints and deliveries of the tenant."""

    _sql = SQL
    secrets = first(SealedSecrets)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._endpoints, self._deliveries = TableStore(session, ENDPOINTS), TableStore(session, DELIVERIES)

    async def count(self) -> int:
        await self._session.take_turn("webhook_endpoints")
        return int(await self._value("count"))

    async def get(self, id: str, *, lock: bool = False) -> Endpoint | None:
        return await self._endpoints.get(id, lock=lock)

    async def add(self, endpoint: Endpoint, secrets: SealedSecrets, checkpoint: FeedPosition) -> None:
        columns = {"secret": secrets.current, "previous_secret": secrets.previous} | kept_of(checkpoint)
        await self._endpoints.add(endpoint, shard=shard_of(endpoint.id), **columns)
        await self.wake(endpoint.id)

    async def save(
        self, endpoint: Endpoint, *, expected_version: int | None = None, checkpoint: FeedPosition | None = None
    ) -> None:
        more = {} if checkpoint is None else kept_of(checkpoint)
        await self._endpoints.save(endpoint, expected_version=expected_version, **more)
        await self.wake(endpoint.id)

    async def remove(self, id: str) -> None:
        await self.fail_open(id, self._session.now)
        await self._endpoints.remove(id)

    async def page(self, page_request: PageRequest) -> Page[Endpoint]:
        return await self._endpoints.page(page_request)

    async def seal(self, id: str, secrets: SealedSecrets) -> None:
        await self._run("seal", id=id, **asdict(secrets))
        await self.wake(id)

    async def delivery(self, endpoint: str, id: str, *, lock: bool = False) -> Delivery | None:
        delivery = await self._deliveries.get(id, lock=lock)
        return delivery if delivery and delivery.endpoint == endpoint else None

    async def deliveries(self, wanted: DeliveryFilter, page_request: PageRequest) -> Page[Delivery]:
        if wanted.endpoint is None or wanted.event is not None:
            return await self._deliveries.page(page_request, wanted)
        key = page_request.key or ("" if page_request.backwards else _BEYOND)
        values = {**wanted.given(), "page_key": key}
        rows = await self._session.all(deliveries_sql("deliveries", wanted, page_request), **values)
        end = None
        if len(rows) <= page_request.limit and _is_partial(wanted):
            async with self._session.snapshot():
                rows = await self._session.all(deliveries_sql("deliveries", wanted, page_request), **values)
                row = await self._session.one(deliveries_sql("deliveries_end", wanted, page_request), **values)
            end = row[0] if row else None
        return page_of([DELIVERIES.row_of(*row) for row in rows], page_request, end=end)

    async def add_delivery(self, delivery: Delivery) -> None:
        await self._deliveries.add(delivery)
        await self.wake(delivery.endpoint)

    async def resend(self, delivery: Delivery, at: datetime) -> None:
        await self._run("resend", id=delivery.id, pending=DeliveryStatus.PENDING, at=at)
        await self.wake(delivery.endpoint)

    async def recover(self, endpoint: str, since: datetime, until: datetime, at: datetime, most: int) -> Recovery:
        values = {"endpoint": endpoint, "since": since, "until": until}
        requeued = await self._run("recover", pending=DeliveryStatus.PENDING, at=at, most=most, **values)
        if requeued:
            await self.wake(endpoint)
        return Recovery(requeued, bool(await self._rows("failed_in", **values)))

    async def wake(self, id: str) -> None:
        await self._run("notify", payload=Signal(self._session.tenant, id).payload)

    async def fail_open(self, endpoint: str, at: datetime) -> int:
        failed = await self._run("fail_open", endpoint=endpoint, failed=DeliveryStatus.FAILED, at=at)
        await self.wake(endpoint)
        return failed

    async def forecast(self, endpoint: Endpoint, since: datetime) -> Forecast:
        totals, bursts, values = forecast_query(endpoint, since)
        row = await self._session.one(totals, **values)
        events, peak, close = row or (0, 0, 0)
        burst = await self._session.all(bursts, **values) if close else []
        return Forecast(
            days=(self._session.now - since).days,
            events=events,
            peak_per_minute=peak,
            deliveries=events - close + posts(burst, endpoint.coalesce_seconds),
        )


def deliveries_sql(name: str, wanted: DeliveryFilter, page_request: PageRequest) -> LiteralString:
    """Return the statement `deliveries` or `deliveries_end` for an endpoint's deliveries with the filters.

    It scans the index of the more selective filter; the status `succeeded` has no index, because most deliveries have it.
    """
    by_status = wanted.status not in (None, DeliveryStatus.SUCCEEDED)
    index = "by_status" if by_status else "by_type" if wanted.type is not None else "by_endpoint"
    names = {
        index,
        "cut" if _is_partial(wanted) else "whole",
        "backwards" if page_request.backwards else "forwards",
        *wanted.given(),
    }
    return rendered(SQL[name], frozenset(names), page_request.limit + 1)


def _is_partial(wanted: DeliveryFilter) -> bool:
    """Return whether the scanned index may contain deliveries that do not match the filter."""
    return wanted.status is not None and (wanted.type is not None or wanted.status == DeliveryStatus.SUCCEEDED)


def forecast_query(endpoint: Endpoint, since: datetime) -> tuple[LiteralString, LiteralString, dict[str, Any]]:
    """Return two statements and their parameters.

    The first returns the number of events, the maximum per minute, and the number of events closer to another one of their
    subject than the window; the second returns the latter as (subject, type, time), by subject and time.
    """
    conditions, values = _conditions(endpoint)
    values |= {"since": since, "window": timedelta(seconds=endpoint.coalesce_seconds)}
    wanted: LiteralString = (
        "WITH wanted AS (" + SQL["wanted"] + conditions + ")" + (_CLOSE if endpoint.coalesce_seconds else _APART)
    )
    return wanted + SQL["totals"], wanted + SQL["bursts"], values


def _conditions(endpoint: Endpoint) -> tuple[LiteralString, dict[str, Any]]:
    """Return the conditions of `domain.webhooks.model.matches` in SQL, and their parameters."""
    filters = endpoint.filters
    conditions: LiteralString = " AND e.type <> ALL(%(types)s)"
    values: dict[str, Any] = {"types": sorted(ON_REQUEST)}
    if EVERY_TYPE not in endpoint.event_types:
        conditions, values = " AND e.type = ANY(%(types)s)", {"types": list(endpoint.event_types)}
    if filters.catalogues:
        conditions += _CATALOGUES
        values |= {"catalogues": list(filters.catalogues), "webhooks_only": sorted(WEBHOOKS_ONLY)}
    if filters.sources:
        conditions += _SOURCES
        values |= {"sources": list(filters.sources), "of_a_source": list(OF_A_SOURCE)}
    if filters.categories:
        conditions += _CATEGORIES
        values |= {"terms": [category_term(category) for category in filters.categories], "filed": list(FILED)}
    return conditions, values
