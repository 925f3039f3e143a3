"""Use cases of links to comparisons."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.access.model import ROLES, Principal
from domain.audit.ports import AuditLog
from domain.comparison.model import AUDITED, LINK_LIFETIME, MAX_OPEN_LINKS, ComparedItem, ComparisonLink
from domain.kernel.errors import Conflict, NotFound, PermissionDenied, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.orgs.model import MANAGERS
from domain.orgs.ports import OrgStore
from ports.unit_of_work import Tx

SCOPE = "products:read"
"""The scope that people need to create links, and must still have when a link is opened."""


@dataclass(frozen=True, slots=True)
class ComparisonLinkService:
    """Use cases of links to comparisons."""

    async def list_open(self, tx: Tx) -> Sequence[ComparisonLink]:
        """Return the tenant's open links without their items, newest first."""
        page = await tx.store(ComparisonLink).page(PageRequest(limit=2 * MAX_OPEN_LINKS))
        return [link for link in page.items if link.expires_at > tx.now]

    async def create(
        self,
        tx: Tx,
        caller: Principal,
        items: Sequence[ComparedItem],
        *,
        includes_cost: bool,
        units: str,
        only_differences: bool,
    ) -> ComparisonLink:
        """Create a link to the items as they are now.

        Raises:
            PermissionDenied: The caller may not read products.
            Unprocessable: There are no items.
            Conflict: Too many links are open.
        """
        if SCOPE not in caller.scopes:
            raise PermissionDenied
        if not items:
            raise Unprocessable("None of these products can be shared.")
        if len(await self.list_open(tx)) >= MAX_OPEN_LINKS:
            raise Conflict(f"{MAX_OPEN_LINKS} links are open, the maximum. Revoke some first.")
        link = ComparisonLink(
            id=new_id("cmp"),
            title=", ".join(dict.fromkeys(item.title[:60] for item in items))[:200],
            author=caller.actor.id,
            includes_cost=includes_cost,
            units=units,
            only_differences=only_differences,
            items=tuple(items if includes_cost else [item.without_cost() for item in items]),
            expires_at=tx.now + LINK_LIFETIME,
            created_at=tx.now,
            updated_at=tx.now,
        )
        await tx.store(ComparisonLink).add(link)
        await tx[AuditLog].add(AUDITED.describe_creation(link))
        return link

    async def revoke(self, tx: Tx, caller: Principal, id: str) -> None:
        """Delete a link.

        Raises:
            NotFound: The link does not exist.
            PermissionDenied: The caller neither created the link nor is an owner or admin.
        """
        link = await tx.store(ComparisonLink).get(id, lock=True)
        if link is None:
            raise NotFound
        if link.author != caller.actor.id and caller.role not in MANAGERS:
            raise PermissionDenied("Only the member who created the link, owners and admins can revoke it.")
        await tx.store(ComparisonLink).remove(id)
        await tx[AuditLog].add(AUDITED.describe_deletion(link))

    async def find_open(self, tx: Tx, id: str) -> ComparisonLink | None:
        """Return a link that has not expired, and whose author may still read products; None if there is none."""
        link = await tx.store(ComparisonLink).get(id)
        if link is None or link.expires_at <= tx.now:
            return None
        author = await tx[OrgStore].find_member_by_user(link.author)
        return link if author is not None and SCOPE in ROLES[author.role] else None
