"""How far logs go, asked of each node for those that it holds."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import LiteralString

from adapters.postgres.events import SQL
from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.nodes.router import Node
from domain.changes.model import LogBounds
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant


async def bounds_of(
    pool: Pool, logs: Collection[Tenant], statement: LiteralString, missing: LogBounds | None
) -> Mapping[Tenant, LogBounds]:
    """The bounds that the statement finds, and `missing` for the others, unless that is None.

    Logs on a node out of reach are left out. Raises Unavailable when all are.
    """
    homes = await pool.homes(logs)
    outcomes = await asyncio.gather(
        *(_asked(pool, node, tenants, statement, missing) for node, tenants in homes.items()), return_exceptions=True
    )
    found: dict[Tenant, LogBounds] = {}
    missed: Unavailable | None = None
    for outcome in outcomes:
        if isinstance(outcome, Unavailable):
            missed = outcome
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            found |= outcome
    if missed is not None and not found:
        raise missed
    return found


async def confirmed(pool: Pool, log: Tenant) -> LogBounds:
    """The bounds of one log, asked as its tenant: at a node that does not hold it any more that fails, and is asked elsewhere."""
    rows = await pool.rows(log, SQL["confirmed"], {"org": log.org, "livemode": log.livemode})
    return LogBounds(*rows[0]) if rows else LogBounds()


async def _asked(
    pool: Pool, node: Node, logs: Sequence[Tenant], statement: LiteralString, missing: LogBounds | None
) -> dict[Tenant, LogBounds]:
    """Of several nodes, one that answers nothing of a log may not hold it any more."""
    ask = reading(statement, orgs=[log.org for log in logs], livemodes=[log.livemode for log in logs])
    found = {Tenant(org, livemode): LogBounds(*numbers) for org, livemode, *numbers in await pool.on(node, ask)}
    if missing is not None:
        alone = len(await pool.holding()) == 1
        for log in [log for log in logs if log not in found]:
            found[log] = missing if alone else await confirmed(pool, log)
    return found
