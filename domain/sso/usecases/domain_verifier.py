"""Verification of mail domains by their TXT records, on request and periodically."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import NotFound
from domain.sso.model import DOMAIN_OBJECT, RECHECK_INTERVAL, VERIFICATION_GRACE_PERIOD, MailDomain
from domain.sso.ports import DnsResolver, DnsUnavailable, SsoDirectory, SsoStore
from ports.clock import Clock
from ports.unit_of_work import Tx

LOOKUP_SECONDS = 5.0
"""Time limit of a DNS look-up."""
MAX_DOMAINS_PER_RUN = 100
"""Maximum number of domains checked in one run of the task."""
_LOG = logging.getLogger("joinery.sso")


@dataclass(frozen=True, slots=True)
class DomainVerifier:
    """Service that looks up the TXT records of mail domains and stores the results."""

    dns: DnsResolver
    directory: SsoDirectory
    clock: Clock

    async def has_record(self, domain: MailDomain) -> bool | None:
        """Return whether the domain has the required TXT record, or None if DNS does not respond."""
        try:
            found = await asyncio.to_thread(self.dns.look_up, domain.domain, "TXT", LOOKUP_SECONDS)
        except DnsUnavailable:
            return None
        wanted = domain.record.encode()
        return any(record.value.strip().strip(b'"') == wanted for record in found)

    async def list_due(self) -> Sequence[MailDomain]:
        """Return verified domains that were last checked more than `RECHECK_INTERVAL` ago."""
        return await self.directory.list_domains_to_check(self.clock.now() - RECHECK_INTERVAL, MAX_DOMAINS_PER_RUN)

    async def store_result(self, tx: Tx, domain_name: str, is_record_found: bool | None) -> MailDomain:
        """Store the result of a look-up of the domain's TXT record, and audit a changed state; return the domain.

        Raises NotFound, or Conflict if another organisation has verified the domain.

        Args:
            tx: The transaction.
            domain_name: The name of the domain.
            is_record_found: Whether the domain has the TXT record, or None if the look-up failed, as returned by `has_record`.
        """
        before = next((domain for domain in await tx[SsoStore].list_domains() if domain.domain == domain_name), None)
        if before is None:
            raise NotFound
        after = apply_lookup(before, is_record_found, tx.now)
        if after == before:
            return before
        await tx[SsoStore].save_domain(after)
        if after.state != before.state:
            old, new = {"state": before.state}, {"state": after.state}
            await tx[AuditLog].add(Change(DOMAIN_OBJECT, domain_name, "update", old, new))
            _LOG.info(
                "state of mail domain %s of organisation %s changed to %s", domain_name, tx.tenant.org, after.state
            )
        return after


def apply_lookup(domain: MailDomain, is_record_found: bool | None, now: datetime) -> MailDomain:
    """Return the domain as changed by the result of a look-up of its TXT record.

    `is_record_found` is whether the record exists, or None if the look-up failed. A domain whose record is missing remains
    verified for VERIFICATION_GRACE_PERIOD.
    """
    if is_record_found is None:
        return replace(domain, looked_at=now) if domain.proven_at is not None else domain
    if is_record_found:
        return replace(domain, proven_at=domain.proven_at or now, lost_at=None, looked_at=now)
    if domain.proven_at is None:
        return replace(domain, looked_at=now)
    lost = domain.lost_at or now
    if now >= lost + VERIFICATION_GRACE_PERIOD:
        return replace(domain, proven_at=None, lost_at=None, looked_at=now)
    return replace(domain, lost_at=lost, looked_at=now)
