"""The worker's side of webhooks in PostgreSQL: whom to serve, what is open, and many outcomes in one transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from psycopg.types.json import Jsonb

from adapters.postgres.pool import Pool
from adapters.postgres.shards import PostgresShards
from adapters.postgres.sqlfile import statements
from adapters.postgres.webhooks import ENDPOINTS, attempts_json
from domain.catalogue.search import category_term
from domain.changes.model import FeedPosition, LogPosition
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import OPEN, Delivery, DeliveryStatus, EndpointStatus, SealedSecrets
from ports.clock import Clock
from ports.webhooks import Progress, Subscriber

SQL = statements("webhook_deliveries", endpoint=ENDPOINTS.columns("e"))
_TYPES: Final = (
    "text", "bool", "text", "text", "text", "text", "text", "int8[]", "bool", "text", "bytea", "jsonb", "int4", "int4",
    "timestamptz", "timestamptz", "timestamptz",
)  # fmt: skip
_STATUSES: Final = {
    "enabled": EndpointStatus.ENABLED,
    "open": list(OPEN),
    "failed": DeliveryStatus.FAILED,
    "succeeded": DeliveryStatus.SUCCEEDED,
}
_ENCODE: Final = msgspec.json.Encoder().encode
_NONE: Final = Jsonb([], dumps=_ENCODE)


def _subscriber(row: tuple[Any, ...]) -> Subscriber:
    org, livemode, secret, previous, own, epoch, network, fat = row[ENDPOINTS.width :]
    checkpoint = FeedPosition(LogPosition(position=own), LogPosition(epoch, network))
    endpoint = ENDPOINTS.row_of(row)
    return Subscriber(Tenant(org, livemode), endpoint, SealedSecrets(secret, previous), checkpoint, fat)


def _row(tenant: Tenant, delivery: Delivery) -> tuple[Any, ...]:
    attempts = Jsonb(attempts_json(delivery.attempts), dumps=_ENCODE) if delivery.attempts else _NONE
    return (
        tenant.org, tenant.livemode, delivery.id, delivery.endpoint, delivery.event, delivery.type, delivery.subject,
        list(delivery.positions), delivery.network, delivery.status, delivery.body, attempts, delivery.made, delivery.tries,
        delivery.next_attempt_at, delivery.created_at, delivery.completed_at,
    )  # fmt: skip


class PostgresDeliveryLog:
    """Across tenants; it records on the connection that holds the shards' locks."""

    def __init__(self, pool: Pool, shards: PostgresShards, clock: Clock) -> None:
        self._pool, self._shards, self._clock = pool, shards, clock

    async def subscribers(self, shards: Sequence[int]) -> Sequence[Subscriber]:
        if not shards:
            return []
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["subscribers"], {"shards": list(shards)})
            return [_subscriber(row) for row in await cursor.fetchall()]

    async def subscriber(self, tenant: Tenant, endpoint: str) -> Subscriber | None:
        rows = await self._rows(SQL["subscriber"], tenant, endpoint=endpoint, enabled=EndpointStatus.ENABLED)
        return _subscriber(rows[0]) if rows else None

    async def open(self, tenant: Tenant, endpoint: str) -> Sequence[Delivery]:
        rows = await self._rows(SQL["open"], tenant, endpoint=endpoint)
        return [
            Delivery(
                id_, of, event, type_, subject, tuple(positions), DeliveryStatus(status), created,
                tries=tries, next_attempt_at=due, made=made, network=network,
            )
            for id_, of, event, type_, subject, positions, network, status, created, tries, due, made in rows
        ]  # fmt: skip

    async def known(self, tenant: Tenant, endpoint: str, after: FeedPosition) -> frozenset[tuple[bool, int]]:
        beyond = {"own": after.own.position, "others": after.network.position}
        rows = await self._rows(SQL["known"], tenant, endpoint=endpoint, **beyond)
        return frozenset((network, position) for network, position in rows)

    async def body(self, tenant: Tenant, delivery: str) -> bytes | None:
        rows = await self._rows(SQL["body"], tenant, id=delivery)
        return rows[0][0] if rows else None

    async def filed_under(self, tenant: Tenant, products: Sequence[str], categories: Sequence[str]) -> frozenset[str]:
        terms = [category_term(category) for category in categories]
        rows = await self._rows(SQL["filed_under"], tenant, products=list(products), terms=terms)
        return frozenset(row[0] for row in rows)

    async def lapsed_rotations(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["lapsed_rotations"], {"now": now, "limit": limit})
            return [(Tenant(org, livemode), id_) for org, livemode, id_ in await cursor.fetchall()]

    async def _rows(self, sql: Any, tenant: Tenant, **values: Any) -> list[tuple[Any, ...]]:
        async with self._pool.tenant(tenant) as link:
            cursor = await link.cursor.execute(sql, {"org": tenant.org, "livemode": tenant.livemode, **values})
            rows: list[tuple[Any, ...]] = await cursor.fetchall()
            return rows

    async def record(self, progress: Progress) -> None:
        rows = [_row(tenant, delivery) for tenant, delivery in progress.deliveries]
        health = _health(progress)
        async with self._shards.fenced() as link:
            if rows:
                if SQL["staging"] not in link.staged:
                    await link.connection.execute(SQL["staging"], prepare=False)
                    link.staged.add(SQL["staging"])
                async with link.cursor.copy(SQL["copy"]) as copy:
                    copy.set_types(_TYPES)
                    for row in rows:
                        await copy.write_row(row)
                await link.cursor.execute(SQL["hold"])  # before their deliveries, as everybody who changes an endpoint
                await link.cursor.execute(SQL["record"], {**_STATUSES, "now": self._clock.now()})
            if health["ids"]:
                await link.cursor.execute(SQL["progress"], health)


def _health(progress: Progress) -> dict[str, list[Any]]:
    keys = sorted(
        progress.checkpoint.keys() | progress.succeeded.keys() | progress.failing.keys(),
        key=lambda key: (key[0].org, key[0].livemode, key[1]),
    )
    checkpoints = [progress.checkpoint.get(key, FeedPosition()).numbers for key in keys] or [(0, 0, 0)]
    return {
        "orgs": [tenant.org for tenant, _ in keys],
        "livemodes": [tenant.livemode for tenant, _ in keys],
        "ids": [endpoint for _, endpoint in keys],
        **dict(
            zip(
                ("checkpoint", "network_epoch", "network_checkpoint"),
                map(list, zip(*checkpoints, strict=True)),
                strict=True,
            )
        ),
        "succeeded": [progress.succeeded.get(key) for key in keys],
        "health": [key in progress.failing for key in keys],
        "failing": [progress.failing.get(key) for key in keys],
    }
