"""Verification of domains by their DNS record, on request and periodically."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import NotFound
from domain.sso.model import DOMAIN_OBJECT, GRACE, LOOKED_AGAIN, Domain
from domain.sso.ports import NameRecords, NamesUnavailable, SsoDirectory, SsoStore
from ports.clock import Clock
from ports.unit_of_work import Tx

SECONDS = 5.0
"""Timeout of DNS look-ups."""
AT_ONCE = 100
"""Maximum domains per tick."""
_LOG = logging.getLogger("joinery.sso")


@dataclass(frozen=True, slots=True)
class DomainProofs:
    """Verification of domain records. No database connection is held during look-ups."""

    names: NameRecords
    directory: SsoDirectory
    clock: Clock

    async def is_there(self, domain: Domain) -> bool | None:
        """Return whether the domain has its record; None if DNS fails."""
        try:
            found = await asyncio.to_thread(self.names.look_up, domain.domain, "TXT", SECONDS)
        except NamesUnavailable:
            return None
        wanted = domain.record.encode()
        return any(record.value.strip().strip(b'"') == wanted for record in found)

    async def due(self) -> Sequence[Domain]:
        """Return the proven domains that are due for a check."""
        return await self.directory.due(self.clock.now() - LOOKED_AGAIN, AT_ONCE)

    async def keep(self, tx: Tx, name: str, there: bool | None) -> Domain:
        """Store the result of a check.

        A lost proof is audited and remains valid for GRACE; a failed look-up changes nothing. Raises NotFound, and
        Conflict if another organisation's proof is valid.
        """
        before = next((domain for domain in await tx[SsoStore].domains() if domain.domain == name), None)
        if before is None:
            raise NotFound
        after = seen(before, there, tx.now)
        if after == before:
            return before
        await tx[SsoStore].put_domain(after)
        if after.state != before.state:
            old, new = {"state": before.state}, {"state": after.state}
            await tx[AuditLog].add(Change(DOMAIN_OBJECT, name, "update", old, new))
            _LOG.info("domain %s of %s is %s", name, tx.tenant.org, after.state)
        return after


def seen(domain: Domain, there: bool | None, now: datetime) -> Domain:
    """Return the domain after a check."""
    if there is None:
        return replace(domain, looked_at=now) if domain.proven_at is not None else domain
    if there:
        return replace(domain, proven_at=domain.proven_at or now, lost_at=None, looked_at=now)
    if domain.proven_at is None:
        return replace(domain, looked_at=now)
    lost = domain.lost_at or now
    if now >= lost + GRACE:
        return replace(domain, proven_at=None, lost_at=None, looked_at=now)
    return replace(domain, lost_at=lost, looked_at=now)
