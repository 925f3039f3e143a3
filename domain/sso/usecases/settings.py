"""Settings of single sign-on: connection, domains and enforcement."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, Unprocessable
from domain.kernel.mail_addresses import address_key
from domain.secrets.ports import Vault
from domain.sso.model import (
    DOMAIN_OBJECT,
    JOINING,
    MOST_DOMAINS,
    OBJECT,
    Connection,
    Domain,
    domain_of,
    is_domain,
    owner_of,
)
from domain.sso.ports import SsoStore
from ports.unit_of_work import Tx

LONGEST_CLIENT = 400
LONGEST_SECRET = 2000
LONGEST_ISSUER = 1000
_AUDITED_FIELDS = ("issuer", "client_id", "joins_as", "enforced", "enabled")


@dataclass(frozen=True, slots=True)
class Wanted:
    """New settings of a connection; `secret` None keeps the present one, which only the same client may."""

    issuer: str
    client_id: str
    secret: str | None
    joins_as: str | None


class SsoSettings:
    """Settings by owners and operators. All changes are audited, without secrets."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def set(self, tx: Tx, wanted: Wanted) -> Connection:
        """Create or change the connection.

        Another issuer or client must be tried again and is not enforced until then. Raises InvalidRequest.
        """
        before = await tx[SsoStore].connection()
        _check(wanted)
        same = before is not None and (before.issuer, before.client_id) == (wanted.issuer, wanted.client_id)
        if wanted.secret is not None:
            sealed = self._vault.seal({"secret": wanted.secret}, owner_of(tx.tenant.org, wanted.issuer))
        elif before is not None and same:
            sealed = before.sealed
        else:
            raise InvalidRequest.of("secret", "required", "A new client has a new secret. Enter it as well.")
        kept = before if same else None
        after = Connection(
            tx.tenant.org, wanted.issuer, wanted.client_id, sealed, wanted.joins_as,
            enforced=kept is not None and kept.enforced,
            enabled=kept is None or kept.enabled,
            tried_at=kept.tried_at if kept is not None and wanted.secret is None else None,
            created_at=before.created_at if before else tx.now,
            updated_at=tx.now,
        )  # fmt: skip
        await tx[SsoStore].save(after)
        await self._audit(tx, before, after, {"secret": "changed"} if wanted.secret is not None and before else {})
        return after

    async def enable(self, tx: Tx, enabled: bool) -> Connection:
        """Enable or disable sign-in; disabling also ends enforcement. Raises NotFound."""
        before = await self._require_connection(tx)
        after = replace(before, enabled=enabled, enforced=before.enforced and enabled, updated_at=tx.now)
        return await self._save(tx, before, after)

    async def enforce(self, tx: Tx, enforced: bool) -> Connection:
        """Enforce single sign-on for members of proven domains, or stop.

        It must have been used with the present settings, so that nobody is locked out; `SsoRules.barred` then revokes
        sessions. Raises NotFound, Unprocessable.
        """
        before = await self._require_connection(tx)
        if enforced:
            if not any(one.proven_at for one in await tx[SsoStore].domains()):
                raise Unprocessable("Prove a domain first. It determines whose sign-in is enforced.")
            if before.tried_at is None or not before.enabled:
                raise Unprocessable("Sign in with single sign-on once first, so that nobody is locked out.")
        return await self._save(tx, before, replace(before, enforced=enforced, updated_at=tx.now))

    async def remove(self, tx: Tx) -> None:
        """Delete the connection and its subjects. Raises NotFound."""
        before = await self._require_connection(tx)
        await tx[SsoStore].remove()
        await tx[AuditLog].add(Change(OBJECT, before.org, "delete", _plain(before), {}))

    async def add_domain(self, tx: Tx, text: str) -> Domain:
        """Claim a domain, which its `record` proves. Raises InvalidRequest, Conflict."""
        name = address_key(text).removeprefix("@").rstrip(".")
        if not is_domain(name):
            raise InvalidRequest.of("domain", "invalid_format", "Enter a mail domain, such as fjord.example.")
        known = await tx[SsoStore].domains()
        if any(one.domain == name for one in known):
            raise Conflict("This domain is already listed.")
        if len(known) >= MOST_DOMAINS:
            raise Conflict(f"At most {MOST_DOMAINS} domains.")
        made = Domain(tx.tenant.org, name, secrets.token_hex(16), None, None, None, tx.now)
        await tx[SsoStore].put_domain(made)
        await tx[AuditLog].add(Change(DOMAIN_OBJECT, name, "create", {}, {"domain": name}))
        return made

    async def remove_domain(self, tx: Tx, name: str) -> None:
        """Remove a domain. Raises NotFound; Conflict for the last proven domain while enforced."""
        connection, known = await tx[SsoStore].connection(), await tx[SsoStore].domains()
        found = next((one for one in known if one.domain == name), None)
        if found is None:
            raise NotFound
        others = any(one.proven_at for one in known if one is not found)
        if found.proven_at and connection is not None and connection.enforced and not others:
            raise Conflict("This is the last proven domain. Stop enforcing single sign-on first.")
        await tx[SsoStore].remove_domain(name)
        await tx[AuditLog].add(Change(DOMAIN_OBJECT, name, "delete", {"state": found.state}, {}))

    async def affected(self, tx: Tx) -> Sequence[str]:
        """Return the members with addresses in proven domains."""
        proven = [one.domain for one in await tx[SsoStore].domains() if one.proven_at]
        return [one.user for one in await tx[SsoStore].members_of(proven) if domain_of(one.email)]

    async def obliged(self, tx: Tx) -> Sequence[str]:
        """Return the members who must use single sign-on now; none while it is not enforced."""
        connection = await tx[SsoStore].connection()
        return await self.affected(tx) if connection is not None and connection.enforced else ()

    async def _require_connection(self, tx: Tx) -> Connection:
        found = await tx[SsoStore].connection()
        if found is None:
            raise NotFound("Single sign-on is not set up.")
        return found

    async def _save(self, tx: Tx, before: Connection, after: Connection) -> Connection:
        await tx[SsoStore].save(after)
        await self._audit(tx, before, after, {})
        return after

    @staticmethod
    async def _audit(tx: Tx, before: Connection | None, after: Connection, more: Mapping[str, Any]) -> None:
        old, new = _plain(before) if before else {}, {**_plain(after), **more}
        changed = {name for name in new if old.get(name) != new[name]}
        if changed:
            before_values = {name: old[name] for name in changed if name in old}
            action = "update" if before else "create"
            await tx[AuditLog].add(
                Change(OBJECT, after.org, action, before_values, {name: new[name] for name in changed})
            )


def _plain(connection: Connection) -> dict[str, Any]:
    values = ((name, getattr(connection, name)) for name in _AUDITED_FIELDS)
    return {name: value for name, value in values if value is not None}


def _check(wanted: Wanted) -> None:
    if not 0 < len(wanted.issuer) <= LONGEST_ISSUER:
        raise InvalidRequest.of("issuer", "required", "Enter the provider's issuer, an https address.")
    if not (
        0 < len(wanted.client_id) <= LONGEST_CLIENT and wanted.client_id.isascii() and wanted.client_id.isprintable()
    ):
        raise InvalidRequest.of("client_id", "required", "Enter the client ID from your provider.")
    secret = wanted.secret
    if secret is not None and not (0 < len(secret) <= LONGEST_SECRET and secret.isascii() and secret.isprintable()):
        raise InvalidRequest.of("secret", "invalid_format", "Enter the client secret from your provider.")
    if wanted.joins_as is not None and wanted.joins_as not in JOINING:
        raise InvalidRequest.of("joins_as", "invalid_value", "New members cannot get this role by signing in.")
