"""Reading an organisation, the organisations of a person, and the plans on offer."""

from collections.abc import Sequence

from domain.access.model import Principal
from domain.kernel.paging import Cut, Page
from domain.orgs.model import Organisation, Plan
from ports.unit_of_work import Tx


class OrgService:
    """What members and programs may read of organisations and plans."""

    async def own(self, tx: Tx) -> Organisation:
        """The caller's organisation."""
        return await tx.orgs.own()

    async def of_caller(self, tx: Tx, principal: Principal, cut: Cut) -> Page[Organisation]:
        """The organisations that a person is a member of; for a key or an app, the one it belongs to."""
        if principal.person or principal.session:
            return await tx.orgs.of_user(principal.actor.on_behalf_of or principal.actor.id, cut)
        own = await tx.orgs.own()
        before = cut.key is not None and (own.id < cut.key if cut.backwards else own.id > cut.key)
        return Page((own,) if cut.key is None or before else (), has_more=False, next_key=None)

    async def plans(self, tx: Tx) -> Sequence[Plan]:
        """Every plan on offer, cheapest first."""
        return await tx.orgs.plans()
