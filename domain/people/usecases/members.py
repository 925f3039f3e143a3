"""Members of an organisation and its settings. Everybody may leave as long as an owner remains."""

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
from domain.orgs.usecases.service import acting, confirm_role
from ports.unit_of_work import Tx

ROLES = ("owner", "admin", "developer", "editor", "billing", "viewer")
"""Roles, most powerful first."""
LAST_OWNER = "An organisation needs an owner. Make another member an owner first."
_MANAGERS_ONLY = "Only owners and admins can manage members."
_OWNERS_ONLY = "Only owners can add or remove owners."


class MemberService:
    """Management of members by the acting person, whose present role in the store decides."""

    async def change_role(self, tx: Tx, user: str, role: str) -> Member:
        """Change a member's role, effective at their next request.

        Raises PermissionDenied, NotFound; InvalidRequest for an unknown role; Conflict for the last owner.
        """
        refuse_unknown(role)
        held = await tx[OrgStore].hold_members((acting(tx), user))
        member = _managed(held, acting(tx), user)
        refuse_beyond(held[acting(tx)], role)
        if member.role == role:
            return member
        _refuse_last(held, member)
        await tx[OrgStore].change_role(user, role)
        await tx[AuditLog].add(Change("member", user, "update", {"role": member.role}, {"role": role}))
        return Member(member.user, member.org, member.email, role, member.created_at)

    async def remove(self, tx: Tx, user: str) -> Member:
        """Remove a member and revoke their keys and grants; sessions and apps lose access.

        Raises PermissionDenied, NotFound; Conflict for the last owner.
        """
        held = await tx[OrgStore].hold_members((acting(tx), user))
        return await self._remove(tx, held, _managed(held, acting(tx), user))

    async def leave(self, tx: Tx) -> Member:
        """Leave the organisation. Raises Conflict for the last owner, NotFound for no member."""
        held = await tx[OrgStore].hold_members((acting(tx),))
        if (member := held.get(acting(tx))) is None:
            raise NotFound
        return await self._remove(tx, held, member)

    async def _remove(self, tx: Tx, held: Mapping[str, Member], member: Member) -> Member:
        _refuse_last(held, member)
        await tx[OrgStore].remove_member(member.user)
        await tx[AuditLog].add(
            Change("member", member.user, "delete", {"email": member.email, "role": member.role}, {})
        )
        await _end_grants(tx, member.user)
        ended = await tx[KeyStore].revoke_of(member.user)
        await tx[AuditLog].add_all(
            [Change("api_key", id_, "update", {"revoked": False}, {"revoked": True}) for id_ in ended]
        )
        return member


async def _end_grants(tx: Tx, user: str) -> None:
    """Revoke the member's grants to apps, so that they remain revoked if the person returns."""
    for grant in await tx[AppStore].grants(user):
        await tx[AppStore].put_grant(replace(grant, revoked_at=tx.now, updated_at=tx.now))
        await tx[AuditLog].add(Change("oauth_grant", grant.id, "update", {"revoked": False}, {"revoked": True}))


async def managing(tx: Tx) -> Member:
    """Return the acting person if they are a manager, locked until the transaction's end. Raises PermissionDenied."""
    return _manager(await tx[OrgStore].hold_members((acting(tx),)), acting(tx))


def refuse_unknown(role: str) -> None:
    """Refuse an unknown role. Raises InvalidRequest."""
    if role not in ROLES:
        raise InvalidRequest.of("role", "invalid_value", f"Use one of these roles: {', '.join(ROLES)}.")


def refuse_beyond(manager: Member, role: str) -> None:
    """Refuse a role above the manager's own. Raises PermissionDenied."""
    if role == OWNER and manager.role != OWNER:
        raise PermissionDenied(_OWNERS_ONLY)


def _manager(held: Mapping[str, Member], user: str) -> Member:
    found = held.get(user)
    if found is None or not found.manages:
        raise PermissionDenied(_MANAGERS_ONLY)
    return found


def _managed(held: Mapping[str, Member], manager: str, user: str) -> Member:
    """Return a member whom the manager may change."""
    by, found = _manager(held, manager), held.get(user)
    if found is None:
        raise NotFound("The organisation has no such member.")
    refuse_beyond(by, found.role)
    return found


def _refuse_last(held: Mapping[str, Member], member: Member) -> None:
    """Refuse to leave the organisation without an owner. Raises Conflict."""
    others = [other for other in held.values() if other.role == OWNER and other.user != member.user]
    if member.role == OWNER and not others:
        raise Conflict(LAST_OWNER)


class OrgSettings:
    """Settings of an organisation. `versions` are the supported API versions."""

    def __init__(self, versions: Collection[str]) -> None:
        self._versions = tuple(versions)

    async def change(self, tx: Tx, name: str, api_version: str | None) -> Organisation:
        """Set name and pinned API version; None leaves the version to the next request.

        Raises InvalidRequest, PermissionDenied.
        """
        await confirm_role(tx, MANAGERS, "Only owners and admins can change the organisation's settings.")
        new_name = validate_name(name)
        if api_version is not None and api_version not in self._versions:
            raise InvalidRequest.of("api_version", "invalid_value", "There is no such version.")
        before = await tx[OrgStore].own()
        version = api_version or before.api_version
        await tx[OrgStore].change(new_name, version)
        old, new = {"name": before.name, "api_version": before.api_version}, {"name": new_name, "api_version": version}
        changed = [field for field in new if old[field] != new[field]]
        if changed:
            before_values = {field: old[field] for field in changed if old[field] is not None}
            await tx[AuditLog].add(
                Change("organisation", before.id, "update", before_values, {field: new[field] for field in changed})
            )
        return await tx[OrgStore].own()
