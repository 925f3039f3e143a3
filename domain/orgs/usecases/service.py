"""Reading an organisation, the organisations of a user, and the available plans."""

from collections.abc import Collection, Sequence
from itertools import count

from domain.kernel.errors import PermissionDenied
from domain.kernel.paging import Page, PageRequest
from domain.orgs.model import Member, Organisation, Plan
from domain.orgs.ports import Memberships, OrgStore
from ports.unit_of_work import Tx


class OrgService:
    """Read access to organisations and plans."""

    def __init__(self, memberships: Memberships) -> None:
        self._memberships = memberships

    async def get_organisation(self, tx: Tx) -> Organisation:
        """Return the caller's organisation."""
        return await tx[OrgStore].get_organisation()

    async def list_for_caller(
        self, user: str | None, organisation: Organisation, page_request: PageRequest
    ) -> Page[Organisation]:
        """Return a page of the user's organisations.

        For an API key or app (`user` None), only the organisation `organisation`.
        """
        if user is not None:
            return await self._memberships.list_organisations(user, page_request)
        before = page_request.key is not None and (
            organisation.id < page_request.key if page_request.backwards else organisation.id > page_request.key
        )
        return Page((organisation,) if page_request.key is None or before else (), has_more=False, next_key=None)

    async def list_plans(self, tx: Tx) -> Sequence[Plan]:
        """Return all available plans, cheapest first."""
        return await tx[OrgStore].list_plans()


def require_person(tx: Tx) -> str:
    """Return the ID of the user who acts in the transaction.

    Raise PermissionDenied for API keys, apps and the service.
    """
    actor = tx.context.actor
    if actor.kind != "user":
        raise PermissionDenied("Only people signed in to the console can perform this operation, not API keys or apps.")
    return actor.id


async def require_role(tx: Tx, roles: Collection[str], refusal: str) -> None:
    """Raise PermissionDenied, with the text `refusal`, if the acting user's current role is not one of `roles`.

    The role is locked until the transaction ends. Actors other than users, such as operators, are not checked.
    """
    # The role in the session is not used, because it may be outdated.
    if tx.context.actor.kind != "user":
        return
    member = (await tx[OrgStore].lock_members((require_person(tx),))).get(require_person(tx))
    if member is None or member.role not in roles:
        raise PermissionDenied(refusal)


async def list_managers(tx: Tx, *, max_pages: int | None = None) -> list[Member]:
    """Return the owners and admins of the organisation; with `max_pages`, only of its first `max_pages` × 100 members."""
    managers, request = list[Member](), PageRequest(100)
    for number in count(1):
        page = await tx[OrgStore].list_members(request)
        managers += [member for member in page.items if member.is_manager]
        if page.next_key is None or number == max_pages:
            break
        request = PageRequest(100, page.next_key)
    return managers
