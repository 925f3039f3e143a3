"""The network's logs, which the relay fills: logs like any other, of an organisation in name only."""

from collections.abc import Collection, Mapping, Sequence

from adapters.postgres.events import SQL, columns_of, new_epoch
from adapters.postgres.log import bounds_of, confirmed
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.sqlfile import rendered
from domain.changes.model import LogBounds, network_of
from domain.changes.ports import Published
from domain.events.model import LoggedEvent, LogPosition
from domain.kernel.tenancy import Tenant
from ports.clock import Clock
from ports.signals import Signal


class PostgresNetworkLog:
    """Reads on each publisher's node, and appends on the network's."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool, self._clock = pool, clock

    async def publishers(self, among: Collection[Tenant] | None = None) -> Mapping[Tenant, LogBounds]:
        if among is not None:
            return await bounds_of(self._pool, among, SQL["publishers_among"], missing=None)
        found = await self._pool.scatter_best_effort(reading(SQL["publishers"]))
        return {Tenant(org, livemode): LogBounds(*numbers) for rows in found for org, livemode, *numbers in rows}

    async def checkpoints(self, livemode: bool) -> Mapping[Tenant, LogPosition]:
        log = network_of(livemode)
        rows = await self._pool.rows(log, SQL["network_checkpoints"], _of(log))
        return {Tenant(owner, livemode): LogPosition(epoch, position) for owner, epoch, position in rows}

    async def confirmed(self, owner: Tenant) -> LogBounds:
        return await confirmed(self._pool, owner)

    async def published(self, owner: Tenant, after: LogPosition, limit: int) -> Sequence[LoggedEvent]:
        names = frozenset() if after.since is None else frozenset({"since"})
        values = {"after": after.position, "limit": limit, "since": after.since}
        rows = await self._pool.rows(owner, rendered(SQL["published"], names), _of(owner) | values)
        return [LoggedEvent(*row) for row in rows]

    async def append(self, log: Tenant, published: Sequence[Published]) -> bool:
        async with self._pool.tenant(log) as link:
            try:
                async with link.connection.transaction():
                    await self._append(link, log, published)
            except _Overtaken:
                return False
            await link.cursor.execute(SQL["notify"], {"payload": Signal(log).payload})
        return True

    async def _append(self, link: PooledConnection, log: Tenant, published: Sequence[Published]) -> None:
        """Raise the log's row first: one relay waits for another there, so two never copy the same events."""
        events = [event for one in published for event in one.events]
        owners = [one.owner.org for one in published for _ in one.events]
        raised = await (await link.cursor.execute(SQL["raise"], self._raised(log, len(events)))).fetchone()
        assert raised is not None, "a log without a row"
        await self._move(link, log, [one for one in published if one.was is None], "first_checkpoints")
        await self._move(link, log, [one for one in published if one.was is not None], "move_checkpoints")
        # dated anew: within the log, time goes with positions; the body has the event's own
        before = {"before": raised[0] - len(events), "time": raised[1]}
        rows = columns_of(events, [event.body for event in events], [False] * len(events), owners)
        await link.cursor.execute(SQL["insert"], _of(log) | before | rows)

    @staticmethod
    async def _move(link: PooledConnection, log: Tenant, published: Sequence[Published], statement: str) -> None:
        """Move these publishers' checkpoints, each from where it was. Raises _Overtaken."""
        if not published:
            return
        were = [one.was or LogPosition() for one in published]
        params = {
            "owners": [one.owner.org for one in published],
            "epochs": [one.reached.epoch for one in published], "positions": [one.reached.position for one in published],
            "were_epochs": [was.epoch for was in were], "were_positions": [was.position for was in were],
        }  # fmt: skip
        moved = await (await link.cursor.execute(SQL[statement], _of(log) | params)).fetchall()
        if len(moved) != len(published):
            raise _Overtaken

    def _raised(self, log: Tenant, count: int) -> dict[str, object]:
        return _of(log) | {"epoch": new_epoch(), "count": count, "now": self._clock.now(), "publishes": False}


class _Overtaken(Exception):
    """A checkpoint is not where it was."""


def _of(log: Tenant) -> dict[str, object]:
    return {"org": log.org, "livemode": log.livemode}
