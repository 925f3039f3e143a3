"""A place to deliver from for each node: endpoints are shared, and deliveries recorded, where their tenants are."""

from collections.abc import Sequence

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.nodes.router import Node
from adapters.postgres.shards import PostgresShards, members_at
from adapters.postgres.webhook_deliveries import PostgresDeliveryLog
from domain.webhooks.ports import DeliveryPlace
from ports.clock import Clock


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
