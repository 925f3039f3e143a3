"""Sign-in by an identity provider, begun and completed in the same browser, which results in a member's session."""

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
from domain.sso.model import ATTEMPT_LASTS, OBJECT, Attempt, Client, Connection, Identity, Subject, domain_of
from domain.sso.ports import IdentityProviders, ProviderFault, SsoDirectory, SsoStore
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

SEALED_FOR = "sso attempt"
"""Owner of sealed attempts, so that no other sealed value can be passed for one."""
LONGEST_PLACE = 1000


class NoConnection(NotFound):
    """No organisation has set up single sign-on for this address. Sign in with your password or passkey instead."""


class SignInRefused(PermissionDenied):
    """The sign-in was refused."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A started sign-in: the browser's location, and the sealed text of a cookie that lasts `seconds`."""

    url: str
    cookie: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Vouched:
    """An identity verified by the provider, the connection, and the location to open afterwards."""

    connection: Connection
    identity: Identity
    place: str


@dataclass(frozen=True, slots=True)
class SsoSignIn:
    """Sign-in by single sign-on. `callback` begins the redirect URI, which differs by organisation."""

    uow: UnitOfWork
    directory: SsoDirectory
    people: People
    providers: IdentityProviders
    vault: Vault
    clock: Clock
    callback: str

    def redirect_uri(self, org: str) -> str:
        """Return the organisation's own redirect URI, so that responses cannot be mixed up."""
        return f"{self.callback}{org}"

    async def begin(self, email: str, place: str, *, again: bool = False) -> Begun:
        """Start a sign-in for the entered address; `again` requests renewed authentication from the provider.

        Raises NoConnection, SignInRefused.
        """
        connection = await self.directory.of_domain(domain_of(email))
        if connection is None:
            raise NoConnection
        return await self._begin(connection, email, place, again=again)

    async def answered(self, org: str, cookie: str, answer: Mapping[str, str]) -> Vouched:
        """Verify the provider's response. Raises SignInRefused."""
        sealed = self._open(cookie)
        if sealed["org"] != org or datetime.fromisoformat(sealed["until"]) < self.clock.now():
            raise SignInRefused("The sign-in took too long or was started elsewhere. Start again.")
        async with self.uow.read(Tenant(org, True)) as tx:
            connection = await tx[SsoStore].connection()
        if connection is None or not connection.enabled or connection.issuer != sealed["issuer"]:
            raise SignInRefused("Single sign-on was changed meanwhile. Start again.")
        since = sealed.get("again_since")
        again_since = datetime.fromisoformat(since) if since else None
        attempt = Attempt(sealed["state"], sealed["nonce"], sealed["verifier"], again_since)
        try:
            identity = await self.providers.identity(self._client(connection), attempt, answer)
        except ProviderFault as error:
            raise SignInRefused(str(error)) from None
        return Vouched(connection, identity, sealed["place"])

    async def person(self, vouched: Vouched) -> User:
        """Return the person by the provider's subject if it is known, else by the address, creating them if needed.

        Raises SignInRefused.
        """
        identity, org = vouched.identity, vouched.connection.org
        async with self.uow.read(Tenant(org, True)) as tx:
            await _require_proven_domain(tx, identity)
            known = await tx[SsoStore].subject(identity.issuer, identity.subject)
        user = await self.people.get(known.user) if known is not None else None
        if user is None:
            now = self.clock.now()
            user = await self.people.add(User(new_id("usr"), identity.email, identity.name, now, now))
        if user.verified_at is None or not user.name:
            user = replace(user, verified_at=user.verified_at or self.clock.now(), name=user.name or identity.name)
            await self.people.change(user)
        return user

    async def admit(self, tx: Tx, vouched: Vouched, user: User) -> Member:
        """Return the membership, created if the organisation permits it. Raises SignInRefused."""
        identity, connection = vouched.identity, await tx[SsoStore].connection()
        if connection is None or not connection.enabled or connection.issuer != identity.issuer:
            raise SignInRefused("Single sign-on was changed meanwhile. Start again.")
        await _require_proven_domain(tx, identity)
        await _require_proven_domain(tx, replace(identity, email=user.email))
        member = await tx[SsoStore].member(user.id)
        bound = await tx[SsoStore].subject_of(identity.issuer, user.id)
        if member is not None and bound is not None and bound.subject != identity.subject:
            raise SignInRefused(
                "Your address belonged to another account at your provider. An owner has to remove and invite you again."
            )
        if member is None:
            member = await self._join(tx, connection, user)
        await tx[SsoStore].bind(_bind(tx, identity, user, bound))
        if connection.tried_at is None:
            await tx[SsoStore].save(replace(connection, tried_at=tx.now))
        return member

    async def _join(self, tx: Tx, connection: Connection, user: User) -> Member:
        if connection.joins_as is None:
            raise SignInRefused("You are not a member of this organisation. Ask an owner or admin to invite you.")
        member = Member(user.id, connection.org, user.email, connection.joins_as, tx.now)
        await tx[OrgStore].add_member(member)
        after = {"email": member.email, "role": member.role, "by": OBJECT}
        await tx[AuditLog].add(Change("member", user.id, "create", {}, after))
        return member

    async def _begin(self, connection: Connection, email: str, place: str, *, again: bool) -> Begun:
        now = self.clock.now()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = Attempt(state, nonce, verifier, now if again else None)
        try:
            url = await self.providers.authorization_url(self._client(connection), attempt, email)
        except ProviderFault as error:
            raise SignInRefused(str(error)) from None
        sealed = {
            "org": connection.org,
            "issuer": connection.issuer,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "verifier": attempt.verifier,
            "place": place[:LONGEST_PLACE],
            "until": (now + ATTEMPT_LASTS).isoformat(),
            "again_since": now.isoformat() if again else "",
        }
        cookie = base64.urlsafe_b64encode(self.vault.seal(sealed, SEALED_FOR)).decode().rstrip("=")
        return Begun(url, cookie, int(ATTEMPT_LASTS.total_seconds()))

    def _open(self, cookie: str) -> Mapping[str, str]:
        try:
            return self.vault.open(base64.urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4)), SEALED_FOR)
        except (ValueError, binascii.Error):
            raise SignInRefused("This browser has not started a sign-in, or it took too long. Start again.") from None

    def _client(self, connection: Connection) -> Client:
        try:
            secret = self.vault.open(connection.sealed, connection.owner)["secret"]
        except ValueError:
            raise SignInRefused("The client secret cannot be read. An owner must set it again.") from None
        return Client(connection.issuer, connection.client_id, secret, self.redirect_uri(connection.org))


async def _require_proven_domain(tx: Tx, identity: Identity) -> None:
    """Raise SignInRefused unless the address is verified and in a domain that the organisation has proven."""
    if not identity.email_verified:
        raise SignInRefused("Your provider has not verified your address. Have it verified there, then sign in again.")
    domain = domain_of(identity.email)
    proven = [entry.domain for entry in await tx[SsoStore].domains() if entry.proven_at is not None]
    if not any(hmac.compare_digest(domain.encode(), name.encode()) for name in proven):
        raise SignInRefused("Your address is not in a domain that this organisation has proven.")


def _bind(tx: Tx, identity: Identity, user: User, known: Subject | None) -> Subject:
    since = known.created_at if known is not None and known.subject == identity.subject else tx.now
    return Subject(tx.tenant.org, identity.issuer, identity.subject, user.id, identity.email, since, tx.now)
