"""Settings of single sign-on: the connection to the identity provider, mail domains, and enforcement."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, Unprocessable
from domain.kernel.mail_addresses import normalise_mail_address
from domain.secrets.ports import Vault
from domain.sso.model import (
    CONNECTION_OBJECT,
    DOMAIN_OBJECT,
    JOINABLE_ROLES,
    MAX_DOMAINS,
    MailDomain,
    SsoConnection,
    build_secret_owner,
    is_domain,
    parse_email_domain,
)
from domain.sso.ports import SsoStore
from ports.unit_of_work import Tx

MAX_CLIENT_ID_CHARS = 400
MAX_SECRET_CHARS = 2000
MAX_ISSUER_CHARS = 1000
_AUDITED_FIELDS = ("issuer", "client_id", "joins_as", "enforced", "enabled")


@dataclass(frozen=True, slots=True)
class SsoConnectionInput:
    """New settings of a connection to an identity provider.

    Attributes:
        secret: The client secret; None to retain the current one, which is allowed for an unchanged issuer and client
            ID.
        joins_as: Default role of new members: people who join by signing in. None if only members may sign in.
    """

    issuer: str
    client_id: str
    secret: str | None
    joins_as: str | None


class SsoSettings:
    """Use cases of the settings of single sign-on, for owners and operators.

    All changes are audited, without secrets.
    """

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def save_connection(self, tx: Tx, settings: SsoConnectionInput) -> SsoConnection:
        """Create or change the connection, and return it.

        A new issuer or client ID ends the enforcement of single sign-on. Raises InvalidRequest.
        """
        before = await tx[SsoStore].find_connection()
        _refuse_invalid(settings)
        same = before is not None and (before.issuer, before.client_id) == (settings.issuer, settings.client_id)
        if settings.secret is not None:
            sealed = self._vault.encrypt(
                {"secret": settings.secret}, build_secret_owner(tx.tenant.org, settings.issuer)
            )
        elif before is not None and same:
            sealed = before.sealed
        else:
            raise InvalidRequest.for_field(
                "secret",
                "required",
                "A new issuer or client ID has another client secret. Enter the client secret as well.",
            )
        unchanged = before if same else None
        after = SsoConnection(
            tx.tenant.org, settings.issuer, settings.client_id, sealed, settings.joins_as,
            enforced=unchanged is not None and unchanged.enforced,
            enabled=unchanged is None or unchanged.enabled,
            tried_at=unchanged.tried_at if unchanged is not None and settings.secret is None else None,
            created_at=before.created_at if before else tx.now,
            updated_at=tx.now,
        )  # fmt: skip
        await tx[SsoStore].save_connection(after)
        await self._audit_change(
            tx, before, after, {"secret": "changed"} if settings.secret is not None and before else {}
        )
        return after

    async def set_enabled(self, tx: Tx, enabled: bool) -> SsoConnection:
        """Enable or disable single sign-on; disabling also stops its enforcement. Raises NotFound."""
        before = await self._require_connection(tx)
        after = replace(before, enabled=enabled, enforced=before.enforced and enabled, updated_at=tx.now)
        return await self._save_change(tx, before, after)

    async def set_enforced(self, tx: Tx, enforced: bool) -> SsoConnection:
        """Start or stop requiring single sign-on of members with addresses in verified domains.

        After starting, the caller revokes other sessions with `SsoRules.revoke_barred`. Raises NotFound, or
        Unprocessable if no domain is verified or nobody has signed in with the current settings.
        """
        before = await self._require_connection(tx)
        if enforced:
            if not any(one.proven_at for one in await tx[SsoStore].list_domains()):
                raise Unprocessable(
                    "Verify a mail domain first. Single sign-on is enforced for members with addresses in verified domains."
                )
            if before.tried_at is None or not before.enabled:
                raise Unprocessable("Sign in with single sign-on once first, so that no one is locked out.")
        return await self._save_change(tx, before, replace(before, enforced=enforced, updated_at=tx.now))

    async def delete_connection(self, tx: Tx) -> None:
        """Delete the connection and the identities linked to it. Raises NotFound."""
        before = await self._require_connection(tx)
        await tx[SsoStore].delete_connection()
        await tx[AuditLog].add(Change(CONNECTION_OBJECT, before.org, "delete", _list_audited_values(before), {}))

    async def add_domain(self, tx: Tx, text: str) -> MailDomain:
        """Add a mail domain, which the organisation must then verify by a TXT record.

        Args:
            tx: The transaction.
            text: The mail domain as entered; a leading `@` and a final dot are ignored.

        Raises:
            InvalidRequest: The text is not a mail domain.
            Conflict: The organisation has already added the domain, or has MAX_DOMAINS domains.
        """
        name = normalise_mail_address(text).removeprefix("@").rstrip(".")
        if not is_domain(name):
            raise InvalidRequest.for_field("domain", "invalid_format", "Enter a mail domain, such as fjord.example.")
        known = await tx[SsoStore].list_domains()
        if any(one.domain == name for one in known):
            raise Conflict("This domain is already listed.")
        if len(known) >= MAX_DOMAINS:
            raise Conflict(f"An organisation has at most {MAX_DOMAINS} mail domains. Remove one first.")
        made = MailDomain(tx.tenant.org, name, secrets.token_hex(16), None, None, None, tx.now)
        await tx[SsoStore].save_domain(made)
        await tx[AuditLog].add(Change(DOMAIN_OBJECT, name, "create", {}, {"domain": name}))
        return made

    async def remove_domain(self, tx: Tx, name: str) -> None:
        """Remove a mail domain.

        Raises NotFound, or Conflict for the last verified domain while single sign-on is enforced.
        """
        connection, known = await tx[SsoStore].find_connection(), await tx[SsoStore].list_domains()
        found = next((one for one in known if one.domain == name), None)
        if found is None:
            raise NotFound
        others = any(one.proven_at for one in known if one is not found)
        if found.proven_at and connection is not None and connection.enforced and not others:
            raise Conflict("This is the last verified domain. Stop enforcing single sign-on first.")
        await tx[SsoStore].delete_domain(name)
        await tx[AuditLog].add(Change(DOMAIN_OBJECT, name, "delete", {"state": found.state}, {}))

    async def list_members_in_verified_domains(self, tx: Tx) -> Sequence[str]:
        """Return the IDs of the members whose email address is in a verified domain."""
        proven = [one.domain for one in await tx[SsoStore].list_domains() if one.proven_at]
        return [one.user for one in await tx[SsoStore].list_members_in_domains(proven) if parse_email_domain(one.email)]

    async def list_members_bound_to_sso(self, tx: Tx) -> Sequence[str]:
        """Return the IDs of the members who must use single sign-on; empty while it is not enforced."""
        connection = await tx[SsoStore].find_connection()
        return await self.list_members_in_verified_domains(tx) if connection is not None and connection.enforced else ()

    async def _require_connection(self, tx: Tx) -> SsoConnection:
        found = await tx[SsoStore].find_connection()
        if found is None:
            raise NotFound("Single sign-on is not set up.")
        return found

    async def _save_change(self, tx: Tx, before: SsoConnection, after: SsoConnection) -> SsoConnection:
        await tx[SsoStore].save_connection(after)
        await self._audit_change(tx, before, after, {})
        return after

    @staticmethod
    async def _audit_change(
        tx: Tx, before: SsoConnection | None, after: SsoConnection, extra_values: Mapping[str, Any]
    ) -> None:
        """Record the changed settings in the audit log, if any; `extra_values` are added to the new values."""
        old, new = _list_audited_values(before) if before else {}, {**_list_audited_values(after), **extra_values}
        changed = {name for name in new if old.get(name) != new[name]}
        if changed:
            before_values = {name: old[name] for name in changed if name in old}
            action = "update" if before else "create"
            await tx[AuditLog].add(
                Change(CONNECTION_OBJECT, after.org, action, before_values, {name: new[name] for name in changed})
            )


def _list_audited_values(connection: SsoConnection) -> dict[str, Any]:
    values = ((name, getattr(connection, name)) for name in _AUDITED_FIELDS)
    return {name: value for name, value in values if value is not None}


def _refuse_invalid(settings: SsoConnectionInput) -> None:
    if not 0 < len(settings.issuer) <= MAX_ISSUER_CHARS:
        raise InvalidRequest.for_field("issuer", "required", "Enter the provider's issuer, an https URL.")
    if not (
        0 < len(settings.client_id) <= MAX_CLIENT_ID_CHARS
        and settings.client_id.isascii()
        and settings.client_id.isprintable()
    ):
        raise InvalidRequest.for_field("client_id", "required", "Enter the client ID from your provider.")
    secret = settings.secret
    if secret is not None and not (0 < len(secret) <= MAX_SECRET_CHARS and secret.isascii() and secret.isprintable()):
        raise InvalidRequest.for_field("secret", "invalid_format", "Enter the client secret from your provider.")
    if settings.joins_as is not None and settings.joins_as not in JOINABLE_ROLES:
        raise InvalidRequest.for_field(
            "joins_as", "invalid_value", "New members cannot get this role by signing in. Select another role."
        )
