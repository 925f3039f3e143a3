"""Reading an organisation, the organisations of a person, and the plans on offer."""

from collections.abc import Collection, Sequence

from domain.kernel.errors import PermissionDenied
from domain.kernel.paging import Page, PageRequest
from domain.orgs.model import Organisation, Plan
from domain.orgs.ports import Memberships, OrgStore
from ports.unit_of_work import Tx


class OrgService:
    """What members and programs may read of organisations and plans."""

    def __init__(self, memberships: Memberships) -> None:
        self._memberships = memberships

    async def own(self, tx: Tx) -> Organisation:
        """Return the caller's organisation."""
        return await tx[OrgStore].own()

    async def of_caller(self, user: str | None, own: Organisation, page_request: PageRequest) -> Page[Organisation]:
        """Return a page of the user's organisations, or of the single one that a key or app belongs to."""
        if user is not None:
            return await self._memberships.of_user(user, page_request)
        before = page_request.key is not None and (
            own.id < page_request.key if page_request.backwards else own.id > page_request.key
        )
        return Page((own,) if page_request.key is None or before else (), has_more=False, next_key=None)

    async def plans(self, tx: Tx) -> Sequence[Plan]:
        """Every plan on offer, cheapest first."""
        return await tx[OrgStore].plans()


def acting(tx: Tx) -> str:
    """Return the acting person. Raises PermissionDenied for keys, apps and the service."""
    actor = tx.context.actor
    if actor.kind != "user":
        raise PermissionDenied("Only people who are signed in to the console may do this; no key and no app can.")
    return actor.id


async def confirm_role(tx: Tx, roles: Collection[str], told: str) -> None:
    """Refuse a person who has none of these roles at this moment and until the transaction's end; operators pass.

    What somebody is known to be when a page is asked for may be over when it changes something. Raises PermissionDenied.
    """
    if tx.context.actor.kind != "user":
        return
    member = (await tx[OrgStore].hold_members((acting(tx),))).get(acting(tx))
    if member is None or member.role not in roles:
        raise PermissionDenied(told)
