"""Reading an organisation, the organisations of a person, and the plans on offer."""

from collections.abc import Sequence

from domain.kernel.paging import Page, PageRequest
from domain.orgs.model import Organisation, Plan
from ports.orgs import Memberships
from ports.unit_of_work import Tx


class OrgService:
    """What members and programs may read of organisations and plans."""

    def __init__(self, memberships: Memberships) -> None:
        self._memberships = memberships

    async def own(self, tx: Tx) -> Organisation:
        """The caller's organisation."""
        return await tx.orgs.own()

    async def of_caller(self, user: str | None, own: Organisation, page_request: PageRequest) -> Page[Organisation]:
        """The organisations that the user is a member of; without one (a key or an app), the one it belongs to."""
        if user is not None:
            return await self._memberships.of_user(user, page_request)
        before = page_request.key is not None and (
            own.id < page_request.key if page_request.backwards else own.id > page_request.key
        )
        return Page((own,) if page_request.key is None or before else (), has_more=False, next_key=None)

    async def plans(self, tx: Tx) -> Sequence[Plan]:
        """Every plan on offer, cheapest first."""
        return await tx.orgs.plans()
