"""Licences as the organisation of a catalogue would grant them: no operation does so yet."""

from typing import Any

from adapters.memory.events import GRANTS, Grant, MemoryEventReader
from domain.kernel.tenancy import Tenant
from tests.support.backend import Backend


async def grant(backend: Backend, owner: Tenant, catalogue: str, holder: str, *groups: str) -> None:
    """Let a holder see what these groups cover, as the owner's organisation would."""
    reader = backend.events
    if isinstance(reader, MemoryEventReader):
        reader._store.write(GRANTS, owner, Grant(catalogue, holder, frozenset(groups)))
        return
    pool: Any = reader._pool  # type: ignore[attr-defined]
    async with pool.owner() as link:
        await link.cursor.execute(
            "INSERT INTO licences VALUES (%s, %s, %s, %s, %s)",
            (owner.org, owner.livemode, catalogue, holder, list(groups)),
        )


async def revoke(backend: Backend, owner: Tenant, catalogue: str, holder: str) -> None:
    """Take it back."""
    reader = backend.events
    if isinstance(reader, MemoryEventReader):
        reader._store.erase(GRANTS, owner, f"{catalogue} {holder}")
        return
    pool: Any = reader._pool  # type: ignore[attr-defined]
    async with pool.owner() as link:
        await link.cursor.execute(
            "DELETE FROM licences WHERE org = %s AND livemode = %s AND catalogue = %s AND holder = %s",
            (owner.org, owner.livemode, catalogue, holder),
        )
