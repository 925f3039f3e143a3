"""Grants of people to apps: recorded, listed and revoked."""

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
    """Grants in the transaction's organisation. People see and revoke their own, owners and admins all."""

    async def list_grants(self, tx: Tx, caller: Principal, *, everybody: bool = False) -> Sequence[Grant]:
        """Return the active grants, oldest first.

        Raises PermissionDenied if `everybody` is requested by others than managers.
        """
        if everybody and not _is_manager(caller):
            raise PermissionDenied("Only owners and admins can see the app access of other members.")
        return await tx[AppStore].grants(None if everybody else _user(caller))

    async def revoke_grant(self, tx: Tx, caller: Principal, id: str) -> None:
        """Revoke a grant, which invalidates the app's tokens within a second.

        Raises NotFound, also for another person's grant.
        """
        found = await tx[AppStore].grants(None if _is_manager(caller) else _user(caller))
        before = next((grant for grant in found if grant.id == id), None)
        if before is None:
            raise NotFound
        after = replace(before, revoked_at=tx.now, updated_at=tx.now)
        await tx[AppStore].put_grant(after)
        await tx[AuditLog].add(GRANT.updated(before, after))

    @staticmethod
    async def agree(tx: Tx, app: App, user: str, scopes: frozenset[str]) -> Grant:
        """Return the grant extended by these scopes.

        When it is new or extended, the membership is locked until the transaction's end, so that no grant survives a
        removal. Raises PermissionDenied.
        """
        before = await tx[AppStore].grant(app.id, user)
        if before is not None and scopes <= before.scopes:
            return before
        if user not in await tx[OrgStore].hold_members((user,)):
            raise PermissionDenied("You are no longer a member of this organisation.")
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


def _is_manager(caller: Principal) -> bool:
    return caller.session and caller.role in MANAGERS


def _user(caller: Principal) -> str:
    if not caller.session or caller.user is None:
        raise PermissionDenied("Only a person signed in to the console has app access to list.")
    return caller.user
