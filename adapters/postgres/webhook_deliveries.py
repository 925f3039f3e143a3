"""The worker's side of webhooks in PostgreSQL: whom to serve, what is open, and many outcomes in one transaction."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
import psycopg
from psycopg.types.json import Jsonb

from adapters.postgres.errors import StaleRoute, is_stale
from adapters.postgres.locks import PostgresShards, members_at
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.nodes.router import Node
from adapters.postgres.session import Fetched
from adapters.postgres.stores import CoordinatorStore, statements, tenant_values
from adapters.postgres.webhooks import ENDPOINTS, attempts_json
from adapters.postgres.webhooks import SQL as SQL_OF_ENDPOINTS
from domain.catalogue.search import category_term
from domain.changes.model import FeedPosition
from domain.events.model import LogPosition
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.usage.meters import DELIVERIES
from domain.webhooks.model import Delivery, DeliveryStatus, EndpointStatus, SealedSecrets
from domain.webhooks.ports import DeliveryPlace, Progress, Subscriber
from ports.clock import Clock
from ports.signals import Signal

SQL = statements("webhook_deliveries", endpoint=ENDPOINTS.columns("e"))
_TYPES: Final = (
    "text", "bool", "text", "text", "text", "text", "text", "int8[]", "bool", "text", "bytea", "jsonb", "int4", "int4",
    "timestamptz", "timestamptz", "timestamptz",
)  # fmt: skip
_ID: Final = 2
_ENDPOINT: Final = 3
_STATUS: Final = 9
"""Columns of `_row`."""
_ENCODE: Final = msgspec.json.Encoder().encode
_NONE: Final = Jsonb([], dumps=_ENCODE)


def _subscriber(row: Fetched) -> Subscriber:
    org, livemode, secret, previous, own, epoch, network, fat = row[ENDPOINTS.width :]
    checkpoint = FeedPosition(LogPosition(position=own), LogPosition(epoch, network))
    endpoint = ENDPOINTS.row_of(row)
    return Subscriber(Tenant(org, livemode), endpoint, SealedSecrets(secret, previous), checkpoint, fat)


def _row(tenant: Tenant, delivery: Delivery) -> Fetched:
    attempts = Jsonb(attempts_json(delivery.attempts), dumps=_ENCODE) if delivery.attempts else _NONE
    return (
        tenant.org, tenant.livemode, delivery.id, delivery.endpoint, delivery.event, delivery.type, delivery.subject,
        list(delivery.positions), delivery.network, delivery.status, delivery.body, attempts, delivery.made, delivery.tries,
        delivery.next_attempt_at, delivery.created_at, delivery.completed_at,
    )  # fmt: skip


class PostgresDeliveryLog(CoordinatorStore):
    """Across tenants of one node; it records on the connection that holds the shards' locks there, as each tenant."""

    _sql = SQL

    def __init__(self, pool: Pool, shards: PostgresShards, clock: Clock) -> None:
        super().__init__(pool)
        self._shards, self._clock = shards, clock
        self._counter = new_id("use")
        """What this process counts under: no two wait for each other's row, and there is one to fold for each."""

    async def subscribers(self, shards: Sequence[int]) -> Sequence[Subscriber]:
        if not shards:
            return []
        rows = await self._pool.on(await self._shards.node(), reading(SQL["subscribers"], shards=list(shards)))
        return [_subscriber(row) for row in rows]

    async def subscriber(self, tenant: Tenant, endpoint: str) -> Subscriber | None:
        if await self._shards.node() not in await self._pool.homes([tenant], anew=True):
            return None
        rows = await self._read("subscriber", tenant, endpoint=endpoint, enabled=EndpointStatus.ENABLED)
        return _subscriber(rows[0]) if rows else None

    async def open(self, tenant: Tenant, endpoint: str) -> Sequence[Delivery]:
        rows = await self._read("open", tenant, endpoint=endpoint)
        return [
            Delivery(
                id_, of, event, type_, subject, tuple(positions), DeliveryStatus(status), created,
                tries=tries, next_attempt_at=due, made=made, network=network,
            )
            for id_, of, event, type_, subject, positions, network, status, created, tries, due, made in rows
        ]  # fmt: skip

    async def known(self, tenant: Tenant, endpoint: str, after: FeedPosition) -> frozenset[tuple[bool, int]]:
        beyond = {"own": after.own.position, "others": after.network.position}
        rows = await self._read("known", tenant, endpoint=endpoint, **beyond)
        return frozenset((network, position) for network, position in rows)

    async def body(self, tenant: Tenant, delivery: str) -> bytes | None:
        rows = await self._read("body", tenant, id=delivery)
        return rows[0][0] if rows else None

    async def trace(self, tenant: Tenant, run: str) -> str | None:
        rows = await self._read("trace", tenant, id=run)
        return rows[0][0] if rows else None

    async def filed_under(self, tenant: Tenant, products: Sequence[str], categories: Sequence[str]) -> frozenset[str]:
        terms = [category_term(category) for category in categories]
        rows = await self._read("filed_under", tenant, products=list(products), terms=terms)
        return frozenset(row[0] for row in rows)

    async def lapsed_rotations(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        first = await self._gather_due("lapsed_rotations", now=now, limit=limit)
        return [(Tenant(org, livemode), id_) for _, org, livemode, id_ in first]

    async def _read(self, statement: str, tenant: Tenant, **values: Any) -> list[Fetched]:
        return await self._pool.rows(tenant, SQL[statement], tenant_values(tenant) | values)

    async def record(self, progress: Progress) -> None:
        """Record what is still here; the new node of a tenant that was moved is notified, and whichever process serves it there begins anew."""
        outcomes = _by_tenant(progress)
        while outcomes:
            moved = await self._recorded(outcomes)
            if not moved:
                return
            for tenant in moved:
                for endpoint in outcomes.pop(tenant).endpoints:
                    payload = Signal(tenant, endpoint).payload
                    await self._pool.run(tenant, SQL_OF_ENDPOINTS["notify"], {"payload": payload})

    async def _recorded(self, outcomes: Mapping[Tenant, "_Outcomes"]) -> set[Tenant]:
        """Record all in one transaction, or nothing: then return the tenants that are not here any more."""
        try:
            async with self._shards.fenced() as link:
                await link.enter(next(iter(outcomes)))
                await _stage(link, [row for outcome in outcomes.values() for row in outcome.rows])
                await self._write(link, outcomes, await _held(link, outcomes))
        except psycopg.Error as error:
            if not is_stale(error):
                raise
            homes = await self._pool.homes(outcomes, anew=True)
            if moved := set(outcomes).difference(homes.get(await self._shards.node(), ())):
                return moved
            raise StaleRoute from error
        return set()

    async def _write(
        self, link: PooledConnection, outcomes: Mapping[Tenant, "_Outcomes"], held: Mapping[Tenant, Mapping[str, str]]
    ) -> None:
        """Deliveries of endpoints that are gone are dropped; those of disabled ones have failed."""
        now = self._clock.now()
        async with link.connection.pipeline():
            for tenant, outcome in outcomes.items():
                await link.enter(tenant)
                of, statuses = tenant_values(tenant), held[tenant]
                if statuses:
                    disabled = [id_ for id_, status in statuses.items() if status != EndpointStatus.ENABLED]
                    values = {"known": list(statuses), "disabled": disabled, "now": now}
                    if succeeded := outcome.succeeded(statuses):
                        counted = {"meter": DELIVERIES, "subject": self._counter, "day": now.date(), "ids": succeeded}
                        bounds = {"first": min(succeeded), "last": max(succeeded)}
                        await link.cursor.execute(SQL["succeeded"], of | counted | bounds)
                    await link.cursor.execute(SQL["record"], of | values)
                if outcome.health["ids"]:
                    await link.cursor.execute(SQL["progress"], of | outcome.health)


async def _stage(link: PooledConnection, rows: Sequence[Fetched]) -> None:
    if rows and SQL["staging"] not in link.staged:
        await link.connection.execute(SQL["staging"], prepare=False)
        link.staged.add(SQL["staging"])
    if rows:
        async with link.cursor.copy(SQL["copy"]) as copy:
            copy.set_types(_TYPES)
            for row in rows:
                await copy.write_row(row)


async def _held(link: PooledConnection, outcomes: Mapping[Tenant, "_Outcomes"]) -> Mapping[Tenant, Mapping[str, str]]:
    """Lock the endpoints before their deliveries, as every change of one does; return their statuses."""
    asked = {}
    async with link.connection.pipeline():
        for tenant, outcome in outcomes.items():
            await link.enter(tenant)
            ids = {"ids": sorted({row[_ENDPOINT] for row in outcome.rows})}
            asked[tenant] = await link.connection.cursor(binary=True).execute(SQL["hold"], tenant_values(tenant) | ids)
    return {tenant: dict(await cursor.fetchall()) for tenant, cursor in asked.items()}


@dataclass(slots=True)
class _Outcomes:
    """One tenant's."""

    rows: list[Fetched]
    health: dict[str, list[Any]]

    def succeeded(self, known: Collection[str]) -> list[str]:
        """The deliveries to known endpoints that have succeeded."""
        return [row[_ID] for row in self.rows if row[_STATUS] == DeliveryStatus.SUCCEEDED and row[_ENDPOINT] in known]

    @property
    def endpoints(self) -> list[str]:
        return sorted({row[_ENDPOINT] for row in self.rows} | set(self.health["ids"]))


def _by_tenant(progress: Progress) -> dict[Tenant, _Outcomes]:
    rows: dict[Tenant, list[Fetched]] = {}
    for tenant, delivery in progress.deliveries:
        rows.setdefault(tenant, []).append(_row(tenant, delivery))
    keys = progress.checkpoint.keys() | progress.succeeded.keys() | progress.failing.keys()
    tenants = sorted(rows.keys() | {tenant for tenant, _ in keys}, key=lambda tenant: (tenant.org, tenant.livemode))
    return {tenant: _Outcomes(rows.get(tenant, []), _health(progress, tenant, keys)) for tenant in tenants}


def _health(progress: Progress, tenant: Tenant, keys: Iterable[tuple[Tenant, str]]) -> dict[str, list[Any]]:
    own = sorted((key for key in keys if key[0] == tenant), key=lambda key: key[1])
    checkpoints = [progress.checkpoint.get(key, FeedPosition()).numbers for key in own]
    return {
        "ids": [endpoint for _, endpoint in own],
        "checkpoint": [checkpoint[0] for checkpoint in checkpoints],
        "network_epoch": [checkpoint[1] for checkpoint in checkpoints],
        "network_checkpoint": [checkpoint[2] for checkpoint in checkpoints],
        "succeeded": [progress.succeeded.get(key) for key in own],
        "health": [key in progress.failing for key in own],
        "failing": [progress.failing.get(key) for key in own],
    }


class PostgresDeliveryPlaces:
    """The delivery places of a process."""

    def __init__(self, pool: Pool, shards: int, clock: Clock) -> None:
        self._pool, self._shards, self._clock = pool, shards, clock
        self._made: dict[Node, DeliveryPlace] = {}

    async def current(self) -> Sequence[DeliveryPlace]:
        nodes = await self._pool.holding()
        self._made = {node: self._made.get(node) or self._place(node) for node in nodes}
        return list(self._made.values())

    async def members(self) -> int:
        return max(await self._pool.scatter_best_effort(members_at), default=0)

    def _place(self, node: Node) -> DeliveryPlace:
        shards = PostgresShards(self._pool, self._shards, node)
        return DeliveryPlace(node.name, shards, PostgresDeliveryLog(self._pool, shards, self._clock))
