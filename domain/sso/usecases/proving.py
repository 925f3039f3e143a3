"""Whether a domain's record is there: asked when somebody says so, and again now and then."""

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
"""How long the name system may take."""
AT_ONCE = 100
"""Domains that one tick looks at."""
_LOG = logging.getLogger("joinery.sso")


@dataclass(frozen=True, slots=True)
class DomainProofs:
    """Looks at records, and keeps what it saw. No connection is held while the name system is asked."""

    names: NameRecords
    directory: SsoDirectory
    clock: Clock

    async def is_there(self, domain: Domain) -> bool | None:
        """Whether the domain has its record; None when the name system cannot say."""
        try:
            found = await asyncio.to_thread(self.names.look_up, domain.domain, "TXT", SECONDS)
        except NamesUnavailable:
            return None
        wanted = domain.record.encode()
        return any(record.value.strip().strip(b'"') == wanted for record in found)

    async def due(self) -> Sequence[Domain]:
        """Proven domains that it is time to look at again."""
        return await self.directory.due(self.clock.now() - LOOKED_AGAIN, AT_ONCE)

    async def keep(self, tx: Tx, name: str, there: bool | None) -> Domain:
        """Keep what was seen. Raises NotFound, and Conflict where another organisation's proof counts.

        A proof that is gone is told, and counts for GRACE; a name system that cannot say changes nothing.
        """
        before = next((one for one in await tx[SsoStore].domains() if one.domain == name), None)
        if before is None:
            raise NotFound
        after = seen(before, there, tx.now)
        if after == before:
            return before
        await tx[SsoStore].put_domain(after)
        if after.state != before.state:
            old, new = {"state": before.state}, {"state": after.state}
            await tx[AuditLog].add(Change(DOMAIN_OBJECT, name, "update", old, new))
            _LOG.info("the domain %s of %s is %s", name, tx.tenant.org, after.state)
        return after


def seen(domain: Domain, there: bool | None, now: datetime) -> Domain:
    """Return the domain after a check; `there` is None if the DNS did not respond."""
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
