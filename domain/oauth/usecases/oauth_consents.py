"""Consents of users to apps: recorded, listed and revoked."""

from collections.abc import Sequence
from dataclasses import replace

from domain.access.model import Principal
from domain.audit.ports import AuditLog
from domain.kernel.errors import NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.oauth.model import AUDITED_CONSENT_FIELDS, App, OAuthConsent
from domain.oauth.ports import AppStore
from domain.orgs.model import MANAGERS
from domain.orgs.ports import OrgStore
from ports.unit_of_work import Tx


class OAuthConsentService:
    """Use cases of consents. Users list and revoke their consents, owners and admins also the consents of other members."""

    async def list_consents(
        self, tx: Tx, caller: Principal, *, includes_all_members: bool = False
    ) -> Sequence[OAuthConsent]:
        """Return the active consents of the caller, or of all members if `includes_all_members`, oldest first.

        Raises PermissionDenied for `includes_all_members` unless the caller is owner or admin.
        """
        if includes_all_members and not _is_manager(caller):
            raise PermissionDenied(
                "Only owners and admins who are signed in to the console can see the consents of other members."
            )
        return await tx[AppStore].list_consents(None if includes_all_members else _require_user(caller))

    async def revoke_consent(self, tx: Tx, caller: Principal, id: str) -> None:
        """Revoke a consent; the app's tokens for it become invalid within a second.

        Raises NotFound if the consent is unknown, or if the caller may not revoke it.
        """
        found = await tx[AppStore].list_consents(None if _is_manager(caller) else _require_user(caller))
        before = next((consent for consent in found if consent.id == id), None)
        if before is None:
            raise NotFound
        after = replace(before, revoked_at=tx.now, updated_at=tx.now)
        await tx[AppStore].save_consent(after)
        await tx[AuditLog].add(AUDITED_CONSENT_FIELDS.describe_update(before, after))

    @staticmethod
    async def ensure_consent(tx: Tx, app: App, user: str, scopes: frozenset[str]) -> OAuthConsent:
        """Ensure that the user's consent to the app includes the scopes: create or extend it if needed, and return it.

        Raises PermissionDenied if the user is not a member.
        """
        before = await tx[AppStore].find_consent(app.id, user)
        if before is not None and scopes <= before.scopes:
            return before
        # The lock lasts until the transaction ends, so that no consent is stored after the membership has ended.
        if user not in await tx[OrgStore].lock_members((user,)):
            raise PermissionDenied("You are no longer a member of this organisation.")
        before = await tx[AppStore].find_consent(app.id, user)
        if before is None:
            made = OAuthConsent(new_id("grt"), tx.tenant.org, app.id, app.name, user, scopes, tx.now, tx.now)
            await tx[AppStore].save_consent(made)
            await tx[AuditLog].add(AUDITED_CONSENT_FIELDS.describe_creation(made))
            return made
        after = replace(before, scopes=before.scopes | scopes, app_name=app.name, updated_at=tx.now)
        await tx[AppStore].save_consent(after)
        await tx[AuditLog].add(AUDITED_CONSENT_FIELDS.describe_update(before, after))
        return after


def _is_manager(caller: Principal) -> bool:
    return caller.is_console_session and caller.role in MANAGERS


def _require_user(caller: Principal) -> str:
    if not caller.is_console_session or caller.user is None:
        raise PermissionDenied("Only people signed in to the console can list or revoke their consents to apps.")
    return caller.user
