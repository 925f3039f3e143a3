"""What people let apps do: remembered, listed, and taken back."""

from collections.abc import Sequence
from dataclasses import replace

from domain.access.model import Principal
from domain.audit.ports import AuditLog
from domain.kernel.errors import NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.oauth.model import GRANT, App, Grant
from domain.oauth.ports import AppStore
from domain.orgs.model import MANAGERS
from domain.orgs.ports import OrgStore
from ports.unit_of_work import Tx


class GrantService:
    """Grants in the transaction's organisation. Whoever is signed in sees and revokes their own, owners and admins everybody's."""

    async def list_grants(self, tx: Tx, caller: Principal, *, everybody: bool = False) -> Sequence[Grant]:
        """Return the grants in force, oldest first. Raises PermissionDenied for other people's grants."""
        if everybody and not _manages(caller):
            raise PermissionDenied("Only an owner or admin sees what others let apps do.")
        return await tx[AppStore].grants(None if everybody else _user(caller))

    async def revoke_grant(self, tx: Tx, caller: Principal, id: str) -> None:
        """End it: the app's tokens prove nothing within a second. Raises NotFound, also for somebody else's."""
        found = await tx[AppStore].grants(None if _manages(caller) else _user(caller))
        before = next((grant for grant in found if grant.id == id), None)
        if before is None:
            raise NotFound
        after = replace(before, revoked_at=tx.now, updated_at=tx.now)
        await tx[AppStore].put_grant(after)
        await tx[AuditLog].add(GRANT.updated(before, after))

    @staticmethod
    async def agree(tx: Tx, app: App, user: str, scopes: frozenset[str]) -> Grant:
        """Add the scopes to the person's grant for the app, and return it.

        When that is more, they are held as a member until the transaction's end, so that no grant is made behind a removal. Raises PermissionDenied.
        """
        before = await tx[AppStore].grant(app.id, user)
        if before is not None and scopes <= before.scopes:
            return before
        if user not in await tx[OrgStore].hold_members((user,)):
            raise PermissionDenied("You belong to this organisation no more.")
        before = await tx[AppStore].grant(app.id, user)
        if before is None:
            made = Grant(new_id("grt"), tx.tenant.org, app.id, app.name, user, scopes, tx.now, tx.now)
            await tx[AppStore].put_grant(made)
            await tx[AuditLog].add(GRANT.created(made))
            return made
        after = replace(before, scopes=before.scopes | scopes, app_name=app.name, updated_at=tx.now)
        await tx[AppStore].put_grant(after)
        await tx[AuditLog].add(GRANT.updated(before, after))
        return after


def _manages(caller: Principal) -> bool:
    return caller.session and caller.role in MANAGERS


def _user(caller: Principal) -> str:
    if not caller.session or caller.user is None:
        raise PermissionDenied("Only a person signed in to the console has let apps do anything.")
    return caller.user
