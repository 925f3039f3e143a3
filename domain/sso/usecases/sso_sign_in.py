"""Sign-in by single sign-on, which must start and end in the same browser."""

import base64
import binascii
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.people.model import User
from domain.people.ports import People
from domain.secrets.ports import Vault
from domain.sso.model import (
    ATTEMPT_LIFETIME,
    CONNECTION_OBJECT,
    Identity,
    LinkedIdentity,
    OidcClient,
    SsoAttempt,
    SsoConnection,
    parse_email_domain,
)
from domain.sso.ports import IdentityProviders, ProviderFault, SsoDirectory, SsoStore
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

COOKIE_OWNER = "sso attempt"
"""Associated data of encrypted sign-in cookies (`Vault.encrypt`), so that no other encrypted value is accepted."""
MAX_PAGE_CHARS = 1000


class NoConnection(NotFound):
    """No organisation has set up single sign-on for this address. Sign in with your password or passkey instead."""


class SignInRefused(PermissionDenied):
    """The sign-in was refused."""


@dataclass(frozen=True, slots=True)
class StartedSignIn:
    """Started sign-in.

    Attributes:
        url: The provider's URL to redirect to.
        cookie: The encrypted value of the cookie to set.
        cookie_lifetime_seconds: The lifetime of the cookie.
    """

    url: str
    cookie: str
    cookie_lifetime_seconds: int


@dataclass(frozen=True, slots=True)
class VerifiedSignIn:
    """Sign-in after the provider's response was verified; `next_page` is the path of the page to open afterwards."""

    connection: SsoConnection
    identity: Identity
    next_page: str


@dataclass(frozen=True, slots=True)
class SsoSignIn:
    """Use cases of the sign-in by single sign-on.

    `redirect_uri_prefix` is the start of all redirect URIs; the organisation's ID follows.
    """

    uow: UnitOfWork
    directory: SsoDirectory
    people: People
    providers: IdentityProviders
    vault: Vault
    clock: Clock
    redirect_uri_prefix: str

    def build_redirect_uri(self, org: str) -> str:
        """Return the redirect URI of the organisation. Each organisation has its own URI, to prevent mix-up attacks."""
        return f"{self.redirect_uri_prefix}{org}"

    async def begin(self, email: str, next_page: str, *, requires_reauthentication: bool = False) -> StartedSignIn:
        """Start a sign-in for the entered address.

        Args:
            email: The address, whose domain selects the connection.
            next_page: Path of the page to open afterwards.
            requires_reauthentication: Whether the provider must authenticate the person again.

        Raises:
            NoConnection: No organisation has set up single sign-on for the domain.
            SignInRefused: The provider is unavailable or wrongly configured.
        """
        connection = await self.directory.find_by_domain(parse_email_domain(email))
        if connection is None:
            raise NoConnection
        return await self._start_sign_in(
            connection, email, next_page, requires_reauthentication=requires_reauthentication
        )

    async def verify_response(self, org: str, cookie: str, response_params: Mapping[str, str]) -> VerifiedSignIn:
        """Verify the provider's response; return the verified sign-in.

        `cookie` is the cookie of the started sign-in, `response_params` the parameters of the redirect. Raises SignInRefused.
        """
        sealed = self._decrypt_attempt(cookie)
        if sealed["org"] != org or datetime.fromisoformat(sealed["until"]) < self.clock.now():
            raise SignInRefused("The sign-in took too long or was started elsewhere. Start again.")
        async with self.uow.begin_reading(Tenant(org, True)) as tx:
            connection = await tx[SsoStore].find_connection()
        if connection is None or not connection.enabled or connection.issuer != sealed["issuer"]:
            raise SignInRefused("The single sign-on settings have changed since the sign-in started. Start again.")
        since = sealed.get("again_since")
        again_since = datetime.fromisoformat(since) if since else None
        attempt = SsoAttempt(sealed["state"], sealed["nonce"], sealed["verifier"], again_since)
        try:
            identity = await self.providers.verify_identity(self._create_client(connection), attempt, response_params)
        except ProviderFault as error:
            raise SignInRefused(str(error)) from None
        return VerifiedSignIn(connection, identity, sealed["place"])

    async def find_or_create_user(self, sign_in: VerifiedSignIn) -> User:
        """Return the user with the verified identity; create the user if there is none.

        The user is found by the linked identity, else by the email address. Raises SignInRefused.
        """
        identity, org = sign_in.identity, sign_in.connection.org
        async with self.uow.begin_reading(Tenant(org, True)) as tx:
            await _require_verified_domain(tx, identity)
            known = await tx[SsoStore].find_linked_identity(identity.issuer, identity.subject)
        user = await self.people.get(known.user) if known is not None else None
        if user is None:
            now = self.clock.now()
            user = await self.people.add(User(new_id("usr"), identity.email, identity.name, now, now))
        if user.verified_at is None or not user.name:
            user = replace(user, verified_at=user.verified_at or self.clock.now(), name=user.name or identity.name)
            await self.people.save(user)
        return user

    async def link_identity(self, tx: Tx, sign_in: VerifiedSignIn, user: User) -> Member:
        """Link the identity to the user; return the user's membership.

        If the user is not a member, the membership is created if the connection has a role for new members. Raises
        SignInRefused.
        """
        identity, connection = sign_in.identity, await tx[SsoStore].find_connection()
        if connection is None or not connection.enabled or connection.issuer != identity.issuer:
            raise SignInRefused("The single sign-on settings have changed since the sign-in started. Start again.")
        await _require_verified_domain(tx, identity)
        await _require_verified_domain(tx, replace(identity, email=user.email))
        member = await tx[SsoStore].find_member(user.id)
        bound = await tx[SsoStore].find_linked_identity_by_user(identity.issuer, user.id)
        if member is not None and bound is not None and bound.subject != identity.subject:
            raise SignInRefused(
                "Your membership is linked to another account at your provider. Ask an owner to remove you, then invite "
                "you again."
            )
        if member is None:
            member = await self._create_membership(tx, connection, user)
        await tx[SsoStore].save_linked_identity(_create_subject(tx, identity, user, bound))
        if connection.tried_at is None:
            await tx[SsoStore].save_connection(replace(connection, tried_at=tx.now))
        return member

    async def _create_membership(self, tx: Tx, connection: SsoConnection, user: User) -> Member:
        if connection.joins_as is None:
            raise SignInRefused("You are not a member of this organisation. Ask an owner or admin to invite you.")
        member = Member(user.id, connection.org, user.email, connection.joins_as, tx.now)
        await tx[OrgStore].add_member(member)
        after = {"email": member.email, "role": member.role, "by": CONNECTION_OBJECT}
        await tx[AuditLog].add(Change("member", user.id, "create", {}, after))
        return member

    async def _start_sign_in(
        self, connection: SsoConnection, email: str, next_page: str, *, requires_reauthentication: bool
    ) -> StartedSignIn:
        now = self.clock.now()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = SsoAttempt(state, nonce, verifier, now if requires_reauthentication else None)
        try:
            url = await self.providers.build_authorization_url(self._create_client(connection), attempt, email)
        except ProviderFault as error:
            raise SignInRefused(str(error)) from None
        sealed = {
            "org": connection.org,
            "issuer": connection.issuer,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "verifier": attempt.verifier,
            "place": next_page[:MAX_PAGE_CHARS],
            "until": (now + ATTEMPT_LIFETIME).isoformat(),
            "again_since": now.isoformat() if requires_reauthentication else "",
        }
        cookie = base64.urlsafe_b64encode(self.vault.encrypt(sealed, COOKIE_OWNER)).decode().rstrip("=")
        return StartedSignIn(url, cookie, int(ATTEMPT_LIFETIME.total_seconds()))

    def _decrypt_attempt(self, cookie: str) -> Mapping[str, str]:
        try:
            return self.vault.decrypt(base64.urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4)), COOKIE_OWNER)
        except (ValueError, binascii.Error):
            raise SignInRefused(
                "This browser has not started a sign-in, or the sign-in took too long. Start again."
            ) from None

    def _create_client(self, connection: SsoConnection) -> OidcClient:
        try:
            secret = self.vault.decrypt(connection.sealed, connection.secret_owner)["secret"]
        except ValueError:
            raise SignInRefused("The client secret cannot be read. An owner must set it again.") from None
        return OidcClient(connection.issuer, connection.client_id, secret, self.build_redirect_uri(connection.org))


async def _require_verified_domain(tx: Tx, identity: Identity) -> None:
    """Raise SignInRefused unless the email address is verified, and its domain is a verified domain of the organisation."""
    if not identity.email_verified:
        raise SignInRefused("Your provider has not verified your address. Verify it there, then sign in again.")
    domain = parse_email_domain(identity.email)
    proven = [entry.domain for entry in await tx[SsoStore].list_domains() if entry.proven_at is not None]
    if not any(hmac.compare_digest(domain.encode(), name.encode()) for name in proven):
        raise SignInRefused("Your address is not in a verified domain of this organisation. Ask an owner for help.")


def _create_subject(tx: Tx, identity: Identity, user: User, existing: LinkedIdentity | None) -> LinkedIdentity:
    created_at = existing.created_at if existing is not None and existing.subject == identity.subject else tx.now
    return LinkedIdentity(tx.tenant.org, identity.issuer, identity.subject, user.id, identity.email, created_at, tx.now)
