"""Webhook deliveries for workers in PostgreSQL: subscribers, pending deliveries, and recording of outcomes in batches."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg

from adapters.postgres.errors import StaleRoute, is_stale
from adapters.postgres.locks import PostgresShards, members_at
from adapters.postgres.nodes.connecting import Fetched
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.nodes.router import Node
from adapters.postgres.stores import CoordinatorStore, statements, tenant_values
from adapters.postgres.webhooks import DELIVERIES, ENDPOINTS
from adapters.postgres.webhooks import SQL as SQL_OF_ENDPOINTS
from domain.catalogue.search import category_term
from domain.changes.model import FeedPosition
from domain.events.model import LogPosition
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.usage.meters import DELIVERIES as METER
from domain.webhooks.model import Delivery, DeliveryStatus, EndpointStatus, SealedSecrets
from domain.webhooks.ports import DeliveryPlace, Progress, Subscriber
from ports.clock import Clock
from ports.signals import Signal

SQL = statements("webhook_deliveries", endpoint=ENDPOINTS.columns("e"), reported=", ".join(DELIVERIES.stored))
_TYPES = (
    "text", "bool", "text", "text", "text", "text", "text", "int8[]", "text", "timestamptz", "bytea", "jsonb", "int4",
    "timestamptz", "timestamptz", "bool", "int4",
)  # fmt: skip
_HEALTH = ("ids", "checkpoint", "network_epoch", "network_checkpoint", "succeeded", "health", "failing")
"""Parameters of `progress`, each a list with one value per endpoint."""


def _subscriber(row: Fetched) -> Subscriber:
    org, livemode, secret, previous, own, epoch, network, fat = row[ENDPOINTS.width :]
    checkpoint = FeedPosition(LogPosition(position=own), LogPosition(epoch, network))
    endpoint = ENDPOINTS.row_of(*row)
    return Subscriber(Tenant(org, livemode), endpoint, SealedSecrets(secret, previous), checkpoint, fat)


class PostgresDeliveryLog(CoordinatorStore):
    """Delivery log of one node, across tenants; outcomes are recorded as each tenant, on the connection with the shards' locks."""

    _sql = SQL

    def __init__(self, pool: Pool, shards: PostgresShards, clock: Clock) -> None:
        super().__init__(pool)
        self._shards, self._clock = shards, clock
        self._counter = new_id("use")
        """Usage subject of this process, so that processes do not wait for each other's rows."""

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
                id_, endpoint_id, event, type_, subject, tuple(positions), DeliveryStatus(status), created,
                tries=tries, next_attempt_at=due, made=count, network=network,
            )
            for id_, endpoint_id, event, type_, subject, positions, network, status, created, tries, due, count in rows
        ]  # fmt: skip

    async def known(self, tenant: Tenant, endpoint: str, after: FeedPosition) -> frozenset[tuple[bool, int]]:
        positions = {"own": after.own.position, "others": after.network.position}
        rows = await self._read("known", tenant, endpoint=endpoint, **positions)
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
        return await self._gather_due("lapsed_rotations", now=now, limit=limit)

    async def _read(self, statement: str, tenant: Tenant, **values: Any) -> list[Fetched]:
        return await self._pool.rows(tenant, SQL[statement], tenant_values(tenant) | values)

    async def record(self, progress: Progress) -> None:
        """Record the outcomes of tenants on this node; for moved tenants, notify their new node, whose worker repeats the deliveries."""
        outcomes = _by_tenant(progress)
        while outcomes:
            moved = await self._record_all(outcomes)
            if not moved:
                return
            for tenant in moved:
                for endpoint in outcomes.pop(tenant).endpoints:
                    payload = Signal(tenant, endpoint).payload
                    await self._pool.run(tenant, SQL_OF_ENDPOINTS["notify"], {"payload": payload})

    async def _record_all(self, outcomes: Mapping[Tenant, "_Outcomes"]) -> set[Tenant]:
        """Record all outcomes in one transaction; if tenants have moved, record nothing and return them."""
        try:
            async with self._shards.fenced() as link:
                await link.enter(next(iter(outcomes)))
                await _stage(link, outcomes)
                await self._write(link, outcomes, await _lock_endpoints(link, outcomes))
        except psycopg.Error as error:
            if not is_stale(error):
                raise
            homes = await self._pool.homes(outcomes, anew=True)
            if moved := set(outcomes).difference(homes.get(await self._shards.node(), ())):
                return moved
            raise StaleRoute from error
        return set()

    async def _write(
        self,
        link: PooledConnection,
        outcomes: Mapping[Tenant, "_Outcomes"],
        endpoints: Mapping[Tenant, Mapping[str, str]],
    ) -> None:
        """Write the outcomes; deliveries of deleted endpoints are dropped, those of disabled ones have failed."""
        now = self._clock.now()
        async with link.connection.pipeline():
            for tenant, outcome in outcomes.items():
                await link.enter(tenant)
                tenant_params, statuses = tenant_values(tenant), endpoints[tenant]
                if statuses:
                    disabled = [id_ for id_, status in statuses.items() if status != EndpointStatus.ENABLED]
                    values = {"known": list(statuses), "disabled": disabled, "now": now}
                    if succeeded := outcome.succeeded(statuses):
                        usage = {"meter": METER, "subject": self._counter, "day": now.date(), "ids": succeeded}
                        bounds = {"first": min(succeeded), "last": max(succeeded)}
                        await link.run(SQL["succeeded"], tenant_params | usage | bounds)
                    await link.run(SQL["record"], tenant_params | values)
                if outcome.health:
                    health = zip(_HEALTH, map(list, zip(*outcome.health, strict=True)), strict=True)
                    await link.run(SQL["progress"], tenant_params | dict(health))


async def _stage(link: PooledConnection, outcomes: Mapping[Tenant, "_Outcomes"]) -> None:
    if not any(outcome.deliveries for outcome in outcomes.values()):
        return
    if SQL["staging"] not in link.staged:
        await link.connection.execute(SQL["staging"], prepare=False)
        link.staged.add(SQL["staging"])
    async with link.cursor.copy(SQL["copy"]) as copy:
        copy.set_types(_TYPES)
        for tenant, outcome in outcomes.items():
            for delivery in outcome.deliveries:
                await copy.write_row(
                    (tenant.org, tenant.livemode, *DELIVERIES.values(delivery).values(), delivery.made)
                )


async def _lock_endpoints(
    link: PooledConnection, outcomes: Mapping[Tenant, "_Outcomes"]
) -> Mapping[Tenant, Mapping[str, str]]:
    """Lock the endpoints before their deliveries, in the order of every other change; return their statuses by id."""
    cursors = {}
    async with link.connection.pipeline():
        for tenant, outcome in outcomes.items():
            await link.enter(tenant)
            values = tenant_values(tenant) | {"ids": sorted({delivery.endpoint for delivery in outcome.deliveries})}
            cursors[tenant] = await link.connection.cursor(binary=True).execute(SQL["hold"], values)
    return {tenant: dict(await cursor.fetchall()) for tenant, cursor in cursors.items()}


@dataclass(slots=True)
class _Outcomes:
    """Outcomes of a tenant: deliveries, and the values of _HEALTH for each endpoint."""

    deliveries: list[Delivery] = field(default_factory=list)
    health: list[Fetched] = field(default_factory=list)

    def succeeded(self, endpoints: Collection[str]) -> list[str]:
        """Return the ids of successful deliveries to the endpoints."""
        successes = (delivery for delivery in self.deliveries if delivery.status == DeliveryStatus.SUCCEEDED)
        return [delivery.id for delivery in successes if delivery.endpoint in endpoints]

    @property
    def endpoints(self) -> list[str]:
        return sorted({delivery.endpoint for delivery in self.deliveries} | {endpoint for endpoint, *_ in self.health})


def _by_tenant(progress: Progress) -> dict[Tenant, _Outcomes]:
    """Group the outcomes by tenant, with tenants and endpoints in the order in which all processes lock them."""
    keys = progress.checkpoint.keys() | progress.succeeded.keys() | progress.failing.keys()
    tenants = {tenant for tenant, _ in keys}.union(tenant for tenant, _ in progress.deliveries)
    outcomes = {tenant: _Outcomes() for tenant in sorted(tenants, key=lambda tenant: (tenant.org, tenant.livemode))}
    for tenant, delivery in progress.deliveries:
        outcomes[tenant].deliveries.append(delivery)
    for key in sorted(keys, key=lambda key: key[1]):
        checkpoint = progress.checkpoint.get(key, FeedPosition()).numbers
        health = progress.succeeded.get(key), key in progress.failing, progress.failing.get(key)
        outcomes[key[0]].health.append((key[1], *checkpoint, *health))
    return outcomes


class PostgresDeliveryPlaces:
    """Delivery places of the process, one per node."""

    def __init__(self, pool: Pool, shards: int, clock: Clock) -> None:
        self._pool, self._shards, self._clock = pool, shards, clock
        self._places: dict[Node, DeliveryPlace] = {}

    async def current(self) -> Sequence[DeliveryPlace]:
        nodes = await self._pool.holding()
        self._places = {node: self._places.get(node) or self._create(node) for node in nodes}
        return list(self._places.values())

    async def members(self) -> int:
        return max(await self._pool.scatter_best_effort(members_at), default=0)

    def _create(self, node: Node) -> DeliveryPlace:
        shards = PostgresShards(self._pool, self._shards, node)
        return DeliveryPlace(node.name, shards, PostgresDeliveryLog(self._pool, shards, self._clock))
