"""Changes of event logs and licences directly in the database, for which no operation exists."""

from typing import Any

from adapters.postgres.nodes.pool import Pool
from domain.kernel.tenancy import Tenant

_FORGET = """
WITH gone AS (DELETE FROM events WHERE org = %(org)s AND livemode = %(livemode)s AND position >= %(first)s)
UPDATE event_logs AS l SET last = %(first)s - 1, time = (
    SELECT e.time FROM events AS e
    WHERE e.org = l.org AND e.livemode = l.livemode AND e.position = %(first)s - 1
) WHERE l.org = %(org)s AND l.livemode = %(livemode)s
"""
_AGED = """
WITH gone AS (DELETE FROM events WHERE org = %(org)s AND livemode = %(livemode)s AND position <= %(low)s)
UPDATE event_logs SET low = %(low)s WHERE org = %(org)s AND livemode = %(livemode)s
"""
_GRANT = "INSERT INTO licences VALUES (%(org)s, %(livemode)s, %(catalogue)s, %(holder)s, %(groups)s)"
_REVOKE = """
DELETE FROM licences
WHERE org = %(org)s AND livemode = %(livemode)s AND catalogue = %(catalogue)s AND holder = %(holder)s
"""


async def delete_events(pool: Pool, log: Tenant, first: int) -> None:
    """Delete the events from `first` on, without a new epoch."""
    await _run(pool, _FORGET, log, first=first)


async def raise_low_watermark(pool: Pool, log: Tenant, low: int) -> None:
    """Delete the events up to `low`, as by age."""
    await _run(pool, _AGED, log, low=low)


async def grant_licence(pool: Pool, owner: Tenant, catalogue: str, holder: str, *groups: str) -> None:
    """Grant a holder a licence for the groups."""
    await _run(pool, _GRANT, owner, catalogue=catalogue, holder=holder, groups=list(groups))


async def revoke_licence(pool: Pool, owner: Tenant, catalogue: str, holder: str) -> None:
    """Revoke a licence."""
    await _run(pool, _REVOKE, owner, catalogue=catalogue, holder=holder)


async def _run(pool: Pool, statement: str, tenant: Tenant, **values: Any) -> None:
    async with pool.connect_as_owner() as link:
        await link.cursor.execute(statement.encode(), {"org": tenant.org, "livemode": tenant.livemode, **values})
