"""Webhook endpoints and deliveries in PostgreSQL."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, Final, LiteralString

from adapters.postgres.columns import Spread
from adapters.postgres.listing import newest_first, page_of, page_params
from adapters.postgres.session import Session, jsonb, lock_number
from adapters.postgres.sqlfile import statements
from adapters.postgres.table import Table, TableStore
from adapters.postgres.webhook_forecast import forecast_query
from domain.kernel.paging import Page, PageRequest
from domain.webhooks.forecasting import posts
from domain.webhooks.model import (
    Attempt,
    AttemptFailure,
    AttemptStatus,
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
from ports.signals import Signal

SQL = statements("webhooks")
CHANNEL: Final = "joinery_webhooks"
ENDPOINTS: Final = Table(
    Endpoint,
    "webhook_endpoints",
    spread={
        "filters": Spread(Filters, {name: name for name in ("sources", "categories", "catalogues")}),
        "rotation": Spread(Rotation, {"expires_at": "rotation_expires_at", "last4": "previous_last4"}),
    },
    beside={"shard": 0, "secret": b"", "previous_secret": None, "checkpoint": 0},
)
DELIVERY_COLUMNS: Final[LiteralString] = (
    "id, endpoint, event, type, subject, positions, status, created_at, body, attempts, tries, next_attempt_at, "
    "completed_at"
)
"""What `delivery_of` reads."""
_DELIVERY_NAMES: Final = tuple(DELIVERY_COLUMNS.split(", "))
_ATTEMPT_NAMES: Final = tuple(field.name for field in fields(Attempt))
_SELECT_DELIVERIES: Final[LiteralString] = "SELECT " + DELIVERY_COLUMNS + " " + SQL["deliveries"]
_DELIVERY_PIECES: Final[dict[str, LiteralString]] = {
    "status": " AND status = %(status)s",
    "type": " AND type = %(type)s",
    "event": " AND event = %(event)s",
}


def delivery_of(row: Sequence[Any]) -> Delivery:
    """A delivery out of DELIVERY_COLUMNS."""
    values = dict(zip(_DELIVERY_NAMES, row, strict=True))
    values["positions"] = tuple(values["positions"])
    values["status"] = DeliveryStatus(values["status"])
    attempts = values["attempts"] = attempts_of(values["attempts"])
    return Delivery(**values, made=len(attempts))


def attempts_json(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Attempts as the JSON that is kept and that `attempts_of` reads."""
    return [_attempt(attempt) for attempt in attempts]


def _attempt(attempt: Attempt) -> dict[str, Any]:
    kept = {name: value for name in _ATTEMPT_NAMES if (value := getattr(attempt, name)) not in (None, {})}
    kept["at"] = attempt.at.isoformat()
    return kept


def attempts_of(kept: Sequence[Mapping[str, Any]]) -> tuple[Attempt, ...]:
    """Attempts out of what `attempts_json` kept."""
    return tuple(_attempt_of(**entry) for entry in kept)


def _attempt_of(at: str, status: str, failure: str | None = None, **others: Any) -> Attempt:
    moment, reason = datetime.fromisoformat(at), AttemptFailure(failure) if failure else None
    return Attempt(moment, AttemptStatus(status), failure=reason, **others)


class PostgresWebhookStore:
    """The tenant's endpoints and what was sent to them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._endpoints = TableStore(session, ENDPOINTS)

    async def count(self) -> int:
        """How many endpoints there are; holds off others that are being added until the transaction ends."""
        tenant = self._session.tenant
        await self._session.run(SQL["lock_count"], lock=lock_number("webhook_endpoints", tenant.org, tenant.livemode))
        row = await self._session.one(SQL["count"])
        return int(row[0]) if row else 0

    async def get(self, id: str, *, lock: bool = False) -> Endpoint | None:
        """One endpoint; `lock` keeps others from changing it until the transaction ends."""
        return await self._endpoints.get(id, lock=lock)

    async def add(self, endpoint: Endpoint, secrets: SealedSecrets, checkpoint: int) -> None:
        """Keep a new endpoint, which gets events after the position `checkpoint`."""
        kept = {"secret": secrets.current, "previous_secret": secrets.previous, "checkpoint": checkpoint}
        await self._endpoints.add(endpoint, shard=shard_of(endpoint.id), **kept)
        await self._notify(endpoint.id)

    async def save(
        self, endpoint: Endpoint, *, expected_version: int | None = None, checkpoint: int | None = None
    ) -> None:
        """Keep the new state. Raises PreconditionFailed for another version."""
        more = {} if checkpoint is None else {"checkpoint": checkpoint}
        await self._endpoints.save(endpoint, expected_version=expected_version, **more)
        await self._notify(endpoint.id)

    async def remove(self, id: str) -> None:
        """Forget the endpoint and its secrets; its open deliveries fail."""
        await self.fail_open(id, self._session.now)
        await self._endpoints.remove(id)

    async def page(self, page_request: PageRequest) -> Page[Endpoint]:
        """The tenant's endpoints, newest first."""
        return await self._endpoints.page(page_request)

    async def secrets(self, id: str) -> SealedSecrets | None:
        """The sealed secrets."""
        row = await self._session.one(SQL["secrets"], id=id)
        return SealedSecrets(*row) if row else None

    async def seal(self, id: str, secrets: SealedSecrets) -> None:
        """Replace the sealed secrets."""
        await self._session.run(SQL["seal"], id=id, **asdict(secrets))
        await self._notify(id)

    async def delivery(self, endpoint: str, id: str, *, lock: bool = False) -> Delivery | None:
        """One delivery of the endpoint."""
        statement = _SELECT_DELIVERIES + " AND id = %(id)s"
        row = await self._session.one(statement + " FOR UPDATE" if lock else statement, endpoint=endpoint, id=id)
        return delivery_of(row) if row else None

    async def deliveries(self, endpoint: str, wanted: DeliveryFilter, page_request: PageRequest) -> Page[Delivery]:
        """The endpoint's deliveries, newest first."""
        where, order = newest_first(page_request)
        given = {name: value for name, value in asdict(wanted).items() if value is not None}
        for name in given:
            where = _DELIVERY_PIECES[name] + where
        params = given | page_params(page_request)
        rows = await self._session.all(_SELECT_DELIVERIES + where + order, endpoint=endpoint, **params)
        return page_of([delivery_of(row) for row in rows], page_request, lambda delivery: delivery.id)

    async def add_delivery(self, delivery: Delivery) -> None:
        """Have something sent that is no event of the log (a test)."""
        values = {name: getattr(delivery, name) for name in _DELIVERY_NAMES}
        values |= {"positions": list(delivery.positions), "attempts": jsonb(attempts_json(delivery.attempts))}
        await self._session.run(SQL["add_delivery"], **values)
        await self._notify(delivery.endpoint)

    async def resend(self, delivery: Delivery, at: datetime) -> None:
        """Have a finished delivery sent again with a fresh schedule."""
        await self._session.run(SQL["resend"], id=delivery.id, pending=DeliveryStatus.PENDING, at=at)
        await self._notify(delivery.endpoint)

    async def recover(self, endpoint: str, since: datetime, until: datetime, at: datetime, most: int) -> Recovery:
        """Have failed deliveries made in [since, until] sent again, as many as leave the endpoint with `most` open ones."""
        span = {"endpoint": endpoint, "since": since, "until": until}
        requeued = await self._session.run(SQL["recover"], pending=DeliveryStatus.PENDING, at=at, most=most, **span)
        if requeued:
            await self._notify(endpoint)
        return Recovery(requeued, bool(await self._session.one(SQL["failed_in"], **span)))

    async def fail_open(self, endpoint: str, at: datetime) -> int:
        """Every open delivery fails (the endpoint was disabled); answers how many."""
        failed = await self._session.run(SQL["fail_open"], endpoint=endpoint, failed=DeliveryStatus.FAILED, at=at)
        await self._notify(endpoint)
        return failed

    async def forecast(self, endpoint: Endpoint, since: datetime) -> Forecast:
        """What the endpoint would have got since then; only what comes close together is looked at one by one."""
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

    async def _notify(self, endpoint: str) -> None:
        await self._session.run(SQL["notify"], payload=Signal(self._session.tenant, endpoint).payload)
