"""Use cases of an organisation's members and settings. Members may leave as long as an owner remains."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from domain.access.ports import KeyStore
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from domain.kernel.names import validate_name
from domain.oauth.ports import AppStore
from domain.orgs.model import MANAGERS, OWNER, Member, Organisation
from domain.orgs.ports import OrgStore
from domain.orgs.usecases.service import require_person, require_role
from ports.unit_of_work import Tx

ROLES = ("owner", "admin", "developer", "editor", "billing", "viewer")
"""Roles in order of their power, the most powerful first."""
LAST_OWNER = "An organisation needs an owner. Make another member an owner first."
_MANAGERS_ONLY = "Only owners and admins can manage members."
_OWNERS_ONLY = "Only owners can add or remove owners."


class MemberService:
    """Use cases of members.

    The caller's permissions follow from the caller's current role, which is read from the store.
    """

    async def change_role(self, tx: Tx, user: str, role: str) -> Member:
        """Change a member's role, which takes effect at the member's next request.

        Raises PermissionDenied, NotFound; InvalidRequest for an unknown role; Conflict for the last owner.
        """
        refuse_unknown_role(role)
        members = await tx[OrgStore].lock_members((require_person(tx), user))
        member = _require_managed(members, require_person(tx), user)
        refuse_higher_role(members[require_person(tx)], role)
        if member.role == role:
            return member
        _refuse_last_owner(members, member)
        await tx[OrgStore].change_role(user, role)
        await tx[AuditLog].add(Change("member", user, "update", {"role": member.role}, {"role": role}))
        return Member(member.user, member.org, member.email, role, member.created_at)

    async def remove(self, tx: Tx, user: str) -> Member:
        """Remove a member, and revoke the member's API keys and consents to apps.

        The member's sessions and apps lose access to the organisation.

        Raises PermissionDenied, NotFound; Conflict for the last owner.
        """
        members = await tx[OrgStore].lock_members((require_person(tx), user))
        return await self._remove(tx, members, _require_managed(members, require_person(tx), user))

    async def leave(self, tx: Tx) -> Member:
        """Remove the caller from the organisation.

        Raises Conflict for the last owner, NotFound if the caller is not a member.
        """
        members = await tx[OrgStore].lock_members((require_person(tx),))
        if (member := members.get(require_person(tx))) is None:
            raise NotFound
        return await self._remove(tx, members, member)

    async def _remove(self, tx: Tx, members: Mapping[str, Member], member: Member) -> Member:
        _refuse_last_owner(members, member)
        await tx[OrgStore].remove_member(member.user)
        await tx[AuditLog].add(
            Change("member", member.user, "delete", {"email": member.email, "role": member.role}, {})
        )
        await _revoke_consents(tx, member.user)
        ended = await tx[KeyStore].revoke_by_member(member.user)
        await tx[AuditLog].add_all(
            [Change("api_key", id_, "update", {"revoked": False}, {"revoked": True}) for id_ in ended]
        )
        return member


async def _revoke_consents(tx: Tx, user: str) -> None:
    """Revoke all consents that the member gave to apps; they remain revoked if the user becomes a member again."""
    for grant in await tx[AppStore].list_consents(user):
        await tx[AppStore].save_consent(replace(grant, revoked_at=tx.now, updated_at=tx.now))
        await tx[AuditLog].add(Change("oauth_grant", grant.id, "update", {"revoked": False}, {"revoked": True}))


async def require_manager(tx: Tx) -> Member:
    """Return the caller's membership, locked until the transaction ends.

    Raises PermissionDenied if the caller is neither owner nor admin.
    """
    return _require_manager_role(await tx[OrgStore].lock_members((require_person(tx),)), require_person(tx))


def refuse_unknown_role(role: str) -> None:
    """Raise InvalidRequest if the role does not exist."""
    if role not in ROLES:
        raise InvalidRequest.for_field("role", "invalid_value", f"Use one of these roles: {', '.join(ROLES)}.")


def refuse_higher_role(manager: Member, role: str) -> None:
    """Raise PermissionDenied if the role is `owner` and the manager is not an owner."""
    if role == OWNER and manager.role != OWNER:
        raise PermissionDenied(_OWNERS_ONLY)


def _require_manager_role(members: Mapping[str, Member], user: str) -> Member:
    found = members.get(user)
    if found is None or not found.is_manager:
        raise PermissionDenied(_MANAGERS_ONLY)
    return found


def _require_managed(members: Mapping[str, Member], manager: str, user: str) -> Member:
    """Return the membership of `user`.

    Raises PermissionDenied if `manager` may not change it, NotFound if `user` is not a member.
    """
    acting, found = _require_manager_role(members, manager), members.get(user)
    if found is None:
        raise NotFound("This person is not a member of the organisation.")
    refuse_higher_role(acting, found.role)
    return found


def _refuse_last_owner(members: Mapping[str, Member], member: Member) -> None:
    """Raise Conflict if the member is the only owner."""
    others = [other for other in members.values() if other.role == OWNER and other.user != member.user]
    if member.role == OWNER and not others:
        raise Conflict(LAST_OWNER)


class OrgSettingsService:
    """Use cases of an organisation's settings. `versions` are the supported API versions."""

    def __init__(self, versions: Collection[str]) -> None:
        self._versions = tuple(versions)

    async def change(self, tx: Tx, name: str, api_version: str | None) -> Organisation:
        """Change the name and API version of the organisation; `api_version` None keeps the current version.

        Raises InvalidRequest, PermissionDenied.
        """
        await require_role(tx, MANAGERS, "Only owners and admins can change the organisation's settings.")
        new_name = validate_name(name)
        if api_version is not None and api_version not in self._versions:
            raise InvalidRequest.for_field(
                "api_version", "invalid_value", "This API version does not exist. Select a supported API version."
            )
        before = await tx[OrgStore].get_organisation()
        version = api_version or before.api_version
        await tx[OrgStore].save_settings(new_name, version)
        old, new = {"name": before.name, "api_version": before.api_version}, {"name": new_name, "api_version": version}
        changed = [field for field in new if old[field] != new[field]]
        if changed:
            before_values = {field: old[field] for field in changed if old[field] is not None}
            await tx[AuditLog].add(
                Change("organisation", before.id, "update", before_values, {field: new[field] for field in changed})
            )
        return await tx[OrgStore].get_organisation()
