"""Reading an organisation, the organisations of a person, and the plans on offer."""

from collections.abc import Collection, Sequence

from domain.kernel.errors import PermissionDenied
from domain.kernel.paging import Page, PageRequest
from domain.orgs.model import Organisation, Plan
from domain.orgs.ports import Memberships, OrgStore
from ports.unit_of_work import Tx


class OrgService:
    """Read access to organisations and plans."""

    def __init__(self, memberships: Memberships) -> None:
        self._memberships = memberships

    async def own(self, tx: Tx) -> Organisation:
        """Return the caller's organisation."""
        return await tx[OrgStore].own()

    async def of_caller(self, user: str | None, own: Organisation, page_request: PageRequest) -> Page[Organisation]:
        """Return a page of the user's organisations; for a key or an app, the one it belongs to."""
        if user is not None:
            return await self._memberships.of_user(user, page_request)
        before = page_request.key is not None and (
            own.id < page_request.key if page_request.backwards else own.id > page_request.key
        )
        return Page((own,) if page_request.key is None or before else (), has_more=False, next_key=None)

    async def plans(self, tx: Tx) -> Sequence[Plan]:
        """Return every plan on offer, cheapest first."""
        return await tx[OrgStore].plans()


def acting(tx: Tx) -> str:
    """Return the person who acts in the transaction. Raises PermissionDenied for keys, apps and the service."""
    actor = tx.context.actor
    if actor.kind != "user":
        raise PermissionDenied("Only people signed in to the console can do this, not keys or apps.")
    return actor.id


async def confirm_role(tx: Tx, roles: Collection[str], told: str) -> None:
    """Refuse a person without one of these roles, and lock the role until the transaction's end; operators pass.

    The role known from the session may be outdated. Raises PermissionDenied.
    """
    if tx.context.actor.kind != "user":
        return
    member = (await tx[OrgStore].hold_members((acting(tx),))).get(acting(tx))
    if member is None or member.role not in roles:
        raise PermissionDenied(told)
