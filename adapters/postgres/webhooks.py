"""Webhook endpoints and deliveries in PostgreSQL."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString

from adapters.postgres.session import TenantSession
from adapters.postgres.stores import SCAN_LIMIT, TenantStore, build_page, fetch_first, load_statements, render_statement
from adapters.postgres.table import MultiColumnCodec, Table, TableStore
from domain.catalogue.search_terms import category_term
from domain.changes.model import FeedPosition
from domain.kernel.paging import Page, PageRequest
from domain.webhooks.model import (
    ALL_TYPES,
    CATEGORY_FILTERED_PREFIXES,
    ON_REQUEST_TYPES,
    SOURCE_FILTERED_PREFIXES,
    WEBHOOK_ONLY_TYPES,
    Delivery,
    DeliveryFilter,
    DeliveryStatus,
    EncryptedSecrets,
    Endpoint,
    Filters,
    Forecast,
    Recovery,
    Rotation,
    compute_shard,
)
from domain.webhooks.payload import count_deliveries
from domain.webhooks.ports import WebhookStore
from ports.signals import Signal

CHANNEL = "joinery_webhooks"
ENDPOINTS = Table(
    Endpoint,
    "webhook_endpoints",
    special_codecs={
        "filters": MultiColumnCodec(Filters, {name: name for name in ("sources", "categories", "catalogues")}),
        "rotation": MultiColumnCodec(Rotation, {"expires_at": "rotation_expires_at", "last4": "previous_last4"}),
    },
    extra_columns={
        "shard": 0,
        "secret": b"",
        "previous_secret": None,
        "checkpoint": 0,
        "network_epoch": 0,
        "network_checkpoint": 0,
    },
)
DELIVERY_TABLE = Table(
    Delivery, "webhook_deliveries", expression_by_field={"attempts_made": "jsonb_array_length(attempts)"}
)
SQL = load_statements(
    "webhooks",
    delivery=DELIVERY_TABLE.build_column_list(),
    scan_deliveries=load_statements("webhooks")["scan_deliveries"],
    scan_limit=str(SCAN_LIMIT),
)
_MAX_ID = "~"
"""Text that sorts after every ID."""
_IN_CATALOGUES: Final[LiteralString] = " AND (e.catalogue = ANY(%(catalogues)s) OR e.type = ANY(%(webhooks_only)s))"
_OF_SOURCES: Final[LiteralString] = " AND (NOT (e.type ^@ ANY(%(source_prefixes)s)) OR e.source = ANY(%(sources)s))"
_IN_CATEGORIES: Final[LiteralString] = (
    " AND (NOT (e.type ^@ ANY(%(category_prefixes)s)) OR EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s"
    " AND t.livemode = %(livemode)s AND t.product = e.product AND t.term = ANY(%(terms)s)))"
)
_WITHOUT_COMBINATION: Final[LiteralString] = ", marked AS (SELECT *, false AS close FROM matching) "
_WITH_COMBINATION: Final[LiteralString] = (
    ", marked AS (SELECT *, coalesce(time - lag(time) OVER by_subject < %(window)s OR lead(time) OVER by_subject - time < %(window)s,"
    " false) AS close FROM matching WINDOW by_subject AS (PARTITION BY subject ORDER BY position)) "
)


def build_checkpoint_params(checkpoint: FeedPosition) -> dict[str, int]:
    """Return the values of the columns in which an endpoint's checkpoint is stored, by column name."""
    numbers = checkpoint.increasing_numbers
    return dict(zip(("checkpoint", "network_epoch", "network_checkpoint"), numbers, strict=True))


class PostgresWebhookStore(TenantStore, WebhookStore):
    """Webhook endpoints and deliveries of the tenant."""

    _sql = SQL
    get_secrets = fetch_first(EncryptedSecrets)

    def __init__(self, session: TenantSession) -> None:
        super().__init__(session)
        self._endpoints, self._deliveries = TableStore(session, ENDPOINTS), TableStore(session, DELIVERY_TABLE)

    async def count(self) -> int:
        await self._session.acquire_lock("webhook_endpoints")
        return int(await self._fetch_scalar("count"))

    async def get(self, id: str, *, lock: bool = False) -> Endpoint | None:
        return await self._endpoints.get(id, lock=lock)

    async def add(self, endpoint: Endpoint, secrets: EncryptedSecrets, checkpoint: FeedPosition) -> None:
        columns = {"secret": secrets.current, "previous_secret": secrets.previous} | build_checkpoint_params(checkpoint)
        await self._endpoints.add(endpoint, shard=compute_shard(endpoint.id), **columns)
        await self.notify_worker(endpoint.id)

    async def save(
        self, endpoint: Endpoint, *, expected_version: int | None = None, checkpoint: FeedPosition | None = None
    ) -> None:
        more = {} if checkpoint is None else build_checkpoint_params(checkpoint)
        await self._endpoints.save(endpoint, expected_version=expected_version, **more)
        await self.notify_worker(endpoint.id)

    async def remove(self, id: str) -> None:
        await self.fail_open_deliveries(id, self._session.now)
        await self._endpoints.remove(id)

    async def page(self, page_request: PageRequest) -> Page[Endpoint]:
        return await self._endpoints.page(page_request)

    async def replace_secrets(self, id: str, secrets: EncryptedSecrets) -> None:
        await self._run("replace_secrets", id=id, **asdict(secrets))
        await self.notify_worker(id)

    async def get_delivery(self, endpoint: str, id: str, *, lock: bool = False) -> Delivery | None:
        delivery = await self._deliveries.get(id, lock=lock)
        return delivery if delivery and delivery.endpoint == endpoint else None

    async def list_deliveries(self, wanted: DeliveryFilter, page_request: PageRequest) -> Page[Delivery]:
        if wanted.endpoint is None or wanted.event is not None:
            return await self._deliveries.page(page_request, wanted)
        key = page_request.key or ("" if page_request.backwards else _MAX_ID)
        values = {**wanted.get_conditions(), "page_key": key}
        rows = await self._session.fetch_rows(
            build_deliveries_statement("list_deliveries", wanted, page_request), **values
        )
        end = None
        if len(rows) <= page_request.limit and _needs_further_filtering(wanted):
            async with self._session.snapshot():
                rows = await self._session.fetch_rows(
                    build_deliveries_statement("list_deliveries", wanted, page_request), **values
                )
                row = await self._session.fetch_row(
                    build_deliveries_statement("find_deliveries_scan_end", wanted, page_request), **values
                )
            end = row[0] if row else None
        return build_page([DELIVERY_TABLE.build_from_row(*row) for row in rows], page_request, scan_end=end)

    async def add_delivery(self, delivery: Delivery) -> None:
        await self._deliveries.add(delivery)
        await self.notify_worker(delivery.endpoint)

    async def requeue(self, delivery: Delivery, at: datetime) -> None:
        await self._run("requeue", id=delivery.id, pending=DeliveryStatus.PENDING, at=at)
        await self.notify_worker(delivery.endpoint)

    async def recover(self, endpoint: str, since: datetime, until: datetime, at: datetime, max_open: int) -> Recovery:
        values = {"endpoint": endpoint, "since": since, "until": until}
        requeued = await self._run("recover", pending=DeliveryStatus.PENDING, at=at, max_open=max_open, **values)
        if requeued:
            await self.notify_worker(endpoint)
        return Recovery(requeued, bool(await self._fetch_rows("has_failed_deliveries", **values)))

    async def notify_worker(self, id: str) -> None:
        await self._run("notify", payload=Signal(self._session.tenant, id).payload)

    async def fail_open_deliveries(self, endpoint: str, at: datetime) -> int:
        failed = await self._run("fail_open_deliveries", endpoint=endpoint, failed=DeliveryStatus.FAILED, at=at)
        await self.notify_worker(endpoint)
        return failed

    async def compute_forecast(self, endpoint: Endpoint, since: datetime) -> Forecast:
        totals, bursts, values = build_forecast_statements(endpoint, since)
        row = await self._session.fetch_row(totals, **values)
        events, peak, close = row or (0, 0, 0)
        burst = await self._session.fetch_rows(bursts, **values) if close else []
        return Forecast(
            days=(self._session.now - since).days,
            events=events,
            peak_per_minute=peak,
            deliveries=events - close + count_deliveries(burst, endpoint.coalesce_seconds),
        )


def build_deliveries_statement(name: str, wanted: DeliveryFilter, page_request: PageRequest) -> LiteralString:
    """Return an SQL statement for the deliveries of an endpoint that match the filter.

    The statement scans one index: by status, or else by event type, or else of all deliveries of the endpoint. The
    status `succeeded` has no index, because most deliveries have this status.

    Args:
        name: Name of the statement, `list_deliveries` or `find_deliveries_scan_end`.
        wanted: Filter of the deliveries.
        page_request: Requested page.
    """
    by_status = wanted.status not in (None, DeliveryStatus.SUCCEEDED)
    index = "by_status" if by_status else "by_type" if wanted.type is not None else "by_endpoint"
    names = {
        index,
        "scan_limit" if _needs_further_filtering(wanted) else "page_limit",
        "backwards" if page_request.backwards else "forwards",
        *wanted.get_conditions(),
    }
    return render_statement(SQL[name], frozenset(names), page_request.limit + 1)


def _needs_further_filtering(delivery_filter: DeliveryFilter) -> bool:
    """Return whether the index that is scanned for the filter also contains deliveries that do not match the filter."""
    return delivery_filter.status is not None and (
        delivery_filter.type is not None or delivery_filter.status == DeliveryStatus.SUCCEEDED
    )


def build_forecast_statements(
    endpoint: Endpoint, since: datetime
) -> tuple[LiteralString, LiteralString, dict[str, Any]]:
    """Return two SQL statements for the forecast of an endpoint's deliveries from past events, and their parameters.

    Both concern past events that match the endpoint's event types and filters. An event is close if another event of
    the same subject is within the coalescing window. The first statement returns the number of events, the maximum
    number per minute, and the number of close events. The second returns the close events as (subject, type, time),
    ordered by subject and time.

    Args:
        endpoint: The endpoint.
        since: Earliest time of the events.
    """
    conditions, values = _build_event_conditions(endpoint)
    values |= {"since": since, "window": timedelta(seconds=endpoint.coalesce_seconds)}
    events: LiteralString = (
        "WITH matching AS ("
        + SQL["select_matching_events"]
        + conditions
        + ")"
        + (_WITH_COMBINATION if endpoint.coalesce_seconds else _WITHOUT_COMBINATION)
    )
    return events + SQL["compute_totals"], events + SQL["list_close_events"], values


def _build_event_conditions(endpoint: Endpoint) -> tuple[LiteralString, dict[str, Any]]:
    """Return the SQL conditions that an event matches the endpoint's types and filters, and their parameters.

    The conditions correspond to `domain.webhooks.model.matches_endpoint`.
    """
    filters = endpoint.filters
    conditions: LiteralString = " AND e.type <> ALL(%(types)s)"
    values: dict[str, Any] = {"types": sorted(ON_REQUEST_TYPES)}
    if ALL_TYPES not in endpoint.event_types:
        conditions, values = " AND e.type = ANY(%(types)s)", {"types": list(endpoint.event_types)}
    if filters.catalogues:
        conditions += _IN_CATALOGUES
        values |= {"catalogues": list(filters.catalogues), "webhooks_only": sorted(WEBHOOK_ONLY_TYPES)}
    if filters.sources:
        conditions += _OF_SOURCES
        values |= {"sources": list(filters.sources), "source_prefixes": list(SOURCE_FILTERED_PREFIXES)}
    if filters.categories:
        conditions += _IN_CATEGORIES
        values |= {
            "terms": [category_term(category) for category in filters.categories],
            "category_prefixes": list(CATEGORY_FILTERED_PREFIXES),
        }
    return conditions, values
