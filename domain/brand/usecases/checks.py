"""Checks of claims: observation of DNS, web pages and members without a database connection, then the decision."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from domain.brand.domains import find_registrable_domain
from domain.brand.grades import TAG_NAME, Observations
from domain.brand.model import RECHECK_INTERVAL, UNPROVEN_LIFETIME, BrandClaim, ClaimStatus, EvidenceKind
from domain.brand.ports import BrandClaimStore, BrandRegistry
from domain.brand.usecases.claims import ClaimService
from domain.kernel.errors import Conflict
from domain.kernel.resource import require_found
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.usecases.service import list_managers
from domain.people.ports import People
from domain.probes.facts import extract_host
from domain.probes.ports import DocumentParser, Unreachable, WebClient
from domain.sso.ports import DnsResolver, DnsUnavailable
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

LOOKUP_SECONDS = 5.0
"""Time limit of a DNS look-up."""
MAX_LOOKUP_WAIT = 15.0
"""Time limit of a DNS look-up including the wait for a thread."""
PAGE_SECONDS = 10.0
"""Time limit of a request for a page."""
PAGE_WITH_REDIRECTS_SECONDS = 20.0
"""Time limit of all requests for a page that redirects."""
MAX_PAGE_BYTES = 1 << 20
MAX_REDIRECTS = 3
MAX_CLAIMS_PER_RUN = 100
"""Maximum number of claims checked in one run of the task."""
_MAX_MANAGER_PAGES = 10
_LOG = logging.getLogger("joinery.brand")
_LOOKUP_THREADS = ThreadPoolExecutor(16, thread_name_prefix="claim-records")
"""Threads of their own: vendors choose the name servers, which may be slow on purpose and must not delay other work."""
_RECHECK = AuditContext(Actor("service", "scheduler"), "brand.recheck_claim")


@dataclass(frozen=True, slots=True)
class ClaimChecker:
    """Service that checks the evidence of claims, on request and periodically."""

    uow: UnitOfWork
    claims: ClaimService
    registry: BrandRegistry
    dns: DnsResolver
    web: WebClient
    documents: DocumentParser
    people: People
    clock: Clock

    async def check(
        self, tenant: Tenant, context: AuditContext, id: str, user: str | None, *, is_new: bool = False
    ) -> BrandClaim:
        """Check the evidence of a pending claim, and decide it if the rules permit; return the claim.

        Args:
            tenant: The tenant.
            context: The audit context of the request.
            id: The ID of the claim.
            user: The acting person, or None.
            is_new: Whether the claim was just created, so that nothing can be published yet. A look-up would only make
                name servers remember that there is no record.

        Raises:
            NotFound: There is no such claim.
            Conflict: The claim is not pending.
        """
        observed = await self._observe(tenant, id, user, is_new=is_new)
        async with self.uow.begin(tenant, context) as tx:
            return await self.claims.conclude(tx, id, observed)

    async def recheck_due(self) -> None:
        """Check approved claims again, and reject pending ones that stayed without evidence, each by itself."""
        now = self.clock.now()
        due = await self.registry.list_due_claims(now - RECHECK_INTERVAL, now - UNPROVEN_LIFETIME, MAX_CLAIMS_PER_RUN)
        for tenant, claim in due:
            try:
                await self._recheck(tenant, claim)
            except Conflict:  # decided or withdrawn meanwhile
                continue
            except Exception:  # the other claims are checked nevertheless
                _LOG.exception("claim %s of organisation %s not checked", claim.id, tenant.org)

    async def _recheck(self, tenant: Tenant, claim: BrandClaim) -> None:
        observed = await self._observe(tenant, claim.id, None)
        async with self.uow.begin(tenant, _RECHECK) as tx:
            if claim.status is ClaimStatus.APPROVED:
                await self.claims.recheck(tx, claim.id, observed)
            else:
                await self.claims.conclude(tx, claim.id, observed)

    async def _observe(self, tenant: Tenant, id: str, user: str | None, *, is_new: bool = False) -> Observations:
        """Observe what the evidence of the claim refers to. Raises NotFound."""
        async with self.uow.begin_reading(tenant) as tx:
            claim = require_found(await tx[BrandClaimStore].get(id))
            kinds = {item.kind for item in claim.evidence}
            members = (
                await list_managers(tx, max_pages=_MAX_MANAGER_PAGES) if EvidenceKind.EMAIL_DOMAIN in kinds else []
            )
        people = await self.people.get_many({member.user for member in members} | ({user} if user else set()))
        addresses = {id_: person.email_key for id_, person in people.items() if person.verified_at is not None}
        challenges = [item.challenge for item in claim.evidence if item.challenge is not None and not is_new]
        records = {one.name: await self._look_up(one.name) for one in challenges if one.name is not None}
        tags: dict[str, str | None] = {}
        faults: dict[str, str] = {}
        for url in [one.url for one in challenges if one.url is not None]:
            try:
                async with asyncio.timeout(PAGE_WITH_REDIRECTS_SECONDS):
                    tags[url] = await self._read_tag(url)
            except Unreachable as error:
                tags[url], faults[url] = None, str(error)
            except TimeoutError:
                tags[url], faults[url] = None, "The server did not respond in time."
        managers = frozenset(addresses[member.user] for member in members if member.user in addresses)
        return Observations(records, tags, faults, managers, addresses.get(user) if user else None)

    async def _look_up(self, name: str) -> frozenset[str] | None:
        """Return the TXT records of a name, or None if DNS does not respond."""
        try:
            async with asyncio.timeout(MAX_LOOKUP_WAIT):
                found = await asyncio.get_running_loop().run_in_executor(
                    _LOOKUP_THREADS, self.dns.look_up, name, "TXT", LOOKUP_SECONDS
                )
        except (DnsUnavailable, TimeoutError):
            return None
        return frozenset(record.value.decode("utf-8", "replace").strip().strip('"') for record in found)

    async def _read_tag(self, url: str) -> str:
        """Return the content of the claim's meta element in a page, or an empty string.

        Redirects are followed over HTTPS within the registrable domain. Raises Unreachable.
        """
        registrable = find_registrable_domain(extract_host(url))
        for _ in range(MAX_REDIRECTS + 1):
            response = await self.web.get(url, accept="text/html", max_bytes=MAX_PAGE_BYTES, seconds=PAGE_SECONDS)
            target = response.redirect_target
            if target is None:
                break
            if not target.startswith("https://") or find_registrable_domain(extract_host(target)) != registrable:
                raise Unreachable("The page redirects to another domain, or to an address without HTTPS.")
            url = target
        else:
            raise Unreachable("The page redirects too often.")
        if not response.is_success:
            raise Unreachable(f"The page responds with status {response.status}.")
        page = await self.documents.parse_page(response)
        return page.meta_values.get(TAG_NAME, "")
