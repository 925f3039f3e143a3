"""Sessions, which are checked at each request, and one-time links that start them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.access.model import SESSION_PREFIX, is_well_formed_secret
from domain.access.usecases import AccessService, generate_secret
from domain.kernel.errors import NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.orgs.model import Organisation
from domain.orgs.ports import Memberships
from domain.people.model import (
    LAST_USE_INTERVAL,
    LINK_LIFETIMES,
    MAX_USER_AGENT_CHARS,
    SESSION_LIFETIME,
    AuthMethod,
    LinkPurpose,
    OneTimeLink,
    Session,
    SessionKind,
    SignedIn,
    User,
)
from domain.people.ports import OneTimeLinks, Sessions, SignInRules
from ports.clock import Clock

USER_TOKEN_PREFIX = "svc_person_"  # noqa: S105  a public prefix
"""Prefix of a user's token for a script."""
DEFAULT_TOKEN_LIFETIME = timedelta(hours=8)
"""Default lifetime of a user's token for a script."""
MAX_ORGS = 100
"""Maximum number of organisations of one user that are read, in order of IDs; further organisations are ignored."""


class SignInMethodRefused(PermissionDenied):
    """This organisation requires another way to sign in. Use single sign-on, or the method that it accepts.

    Raised if the organisation does not accept the methods by which the user has authenticated.
    """


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """IP address and User-Agent of the browser that sends a request."""

    address: str
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class SessionService:
    """Use cases of sessions. The secret of a session is shown once; only its keyed hash is stored."""

    sessions: Sessions
    memberships: Memberships
    access: AccessService
    clock: Clock
    rules: SignInRules | None = None

    async def find(self, cookie: str) -> SignedIn | None:
        """Return the active console session of a cookie, or None.

        The time of the session's last use is stored, at most once per LAST_USE_INTERVAL.
        """
        if not is_well_formed_secret(cookie, (SESSION_PREFIX,)):
            return None
        found = await self.sessions.find(self.access.compute_digest(cookie))
        now = self.clock.now()
        if found is None or found.session.kind is not SessionKind.CONSOLE or not found.session.is_active(now):
            return None
        if now >= found.session.seen_at + LAST_USE_INTERVAL:
            await self.sessions.record_use(found.session.id, now)
        return found

    async def start(
        self, user: User, methods: Sequence[AuthMethod], client: ClientInfo, org: str | None = None
    ) -> tuple[Session, str]:
        """Start a console session; return the session and the value of the session cookie.

        The session shows `org` if that organisation accepts the methods, else the user's first organisation that does.
        Raises SignInMethodRefused if no organisation of the user accepts the methods.
        """
        org = await self._choose_org(user.id, org, methods)
        if org is not None and self.rules is not None:
            await self.rules.record_bypass(user.id, org, methods)
        return await self._create_session(user, org, tuple(methods), client, SessionKind.CONSOLE, SESSION_LIFETIME)

    async def create_token(
        self, user: User, org: str, lifetime: timedelta = DEFAULT_TOKEN_LIFETIME
    ) -> tuple[Session, str]:
        """Create a user's token for a script, a bearer token with the user's permissions (`joinery token create`).

        Returns the session and the bearer token. `lifetime` is the time until the token expires.
        """
        return await self._create_session(
            user, org, (AuthMethod.OPERATOR,), ClientInfo("operator"), SessionKind.TOKEN, lifetime
        )

    async def switch_view(self, session: Session, org: str, livemode: bool) -> Session:
        """Switch the organisation and mode that the session shows; return the changed session.

        Raises NotFound if the user is not a member, SignInMethodRefused if the organisation requires another method.
        """
        await self.check_admission(session, org)
        changed = replace(session, org=org, livemode=livemode)
        await self.sessions.save(changed)
        return changed

    async def check_admission(self, session: Session, org: str) -> None:
        """Check that the session's user may open the organisation with the session's authentication methods.

        Raises NotFound if the user is not a member, SignInMethodRefused if the organisation requires another method.
        """
        if org not in await self._list_org_ids(session.user):
            raise NotFound
        if org != session.org and self.rules is not None:
            if not await self.rules.allows(session.user, org, session.methods):
                raise SignInMethodRefused
            await self.rules.record_bypass(session.user, org, session.methods)

    async def list_accessible_organisations(self, session: Session) -> list[Organisation]:
        """Return the user's organisations that accept the session's authentication methods."""
        found = (await self.memberships.list_organisations(session.user, PageRequest(limit=MAX_ORGS))).items
        if self.rules is None:
            return list(found)
        return [
            org
            for org in found
            if org.id == session.org or await self.rules.allows(session.user, org.id, session.methods)
        ]

    async def record_authentication(self, session: Session, method: AuthMethod) -> Session:
        """Record in the session that the user has authenticated again by `method`; return the changed session."""
        methods = session.methods if method in session.methods else (*session.methods, method)
        changed = replace(session, methods=methods, confirmed_at=self.clock.now())
        await self.sessions.save(changed)
        return changed

    async def renew(self, session: Session, user: User, client: ClientInfo) -> tuple[Session, str]:
        """Replace the session by one with a new secret, after the user has authenticated again.

        Returns the new session and the value of the session cookie.
        """
        fresh, cookie = await self.start(user, session.methods, client, session.org)
        if fresh.org == session.org and session.org is not None and not session.livemode:
            fresh = await self.switch_view(fresh, session.org, session.livemode)
        await self.sessions.revoke((session.id,), self.clock.now())
        return fresh, cookie

    async def list_active(self, user: str) -> Sequence[Session]:
        """Return the user's active sessions, newest first."""
        now = self.clock.now()
        return [session for session in await self.sessions.list_by_user(user) if session.is_active(now)]

    async def revoke(self, user: str, id: str) -> None:
        """Revoke a session of the user. Raises NotFound if the user has no unrevoked session with that ID."""
        ids = {session.id for session in await self.sessions.list_by_user(user)}
        if id not in ids or not await self.sessions.revoke((id,), self.clock.now()):
            raise NotFound

    async def revoke_all(self, user: str, kept_session: str | None = None) -> int:
        """Revoke all sessions and tokens of the user except the session with the ID `kept_session`.

        Returns the number of revoked sessions and tokens.
        """
        ids = [session.id for session in await self.sessions.list_by_user(user) if session.id != kept_session]
        return await self.sessions.revoke(ids, self.clock.now())

    async def revoke_tokens(self, user: str, org: str) -> int:
        """Revoke the user's tokens for scripts in an organisation that the user has left; return their number."""
        sessions = await self.sessions.list_by_user(user)
        ids = [session.id for session in sessions if session.kind is SessionKind.TOKEN and session.org == org]
        return await self.sessions.revoke(ids, self.clock.now()) if ids else 0

    async def delete_ended(self, before: datetime) -> int:
        """Delete sessions and one-time links that ended before `before`; return their number."""
        return await self.sessions.delete_ended(before)

    async def _choose_org(self, user: str, org: str | None, methods: Sequence[AuthMethod]) -> str | None:
        """Return `org` if that organisation accepts the methods, else the user's first organisation that does.

        Returns None for a user without organisations. Raises SignInMethodRefused if no organisation accepts the
        methods.
        """
        ids = await self._list_org_ids(user)
        for org_id in sorted(ids, key=lambda id_: id_ != org):
            if self.rules is None or await self.rules.allows(user, org_id, methods):
                return org_id
        if ids:
            raise SignInMethodRefused
        return None

    async def _list_org_ids(self, user: str) -> list[str]:
        page = await self.memberships.list_organisations(user, PageRequest(limit=MAX_ORGS))
        return [organisation.id for organisation in page.items]

    async def _create_session(
        self,
        user: User,
        org: str | None,
        methods: tuple[AuthMethod, ...],
        client: ClientInfo,
        kind: SessionKind,
        lifetime: timedelta,
    ) -> tuple[Session, str]:
        text = generate_secret(SESSION_PREFIX if kind is SessionKind.CONSOLE else USER_TOKEN_PREFIX)
        now = self.clock.now()
        session = Session(
            id=new_id("ses"),
            user=user.id,
            org=org,
            livemode=True,
            digest=self.access.compute_digest(text),
            kind=kind,
            methods=methods,
            address=client.address,
            user_agent=client.user_agent[:MAX_USER_AGENT_CHARS],
            created_at=now,
            seen_at=now,
            confirmed_at=now,
            expires_at=now + lifetime,
        )
        await self.sessions.add(session)
        return session, text


LINK_PREFIX = "svc_link_"
"""Prefix of the secret in a one-time link."""


@dataclass(frozen=True, slots=True)
class LinkService:
    """Use cases of one-time links, which sign a user in, set a password or verify an email address."""

    links: OneTimeLinks
    access: AccessService
    clock: Clock

    async def create(self, user: User, purpose: LinkPurpose, org: str | None = None) -> tuple[OneTimeLink, str]:
        """Create a one-time link; return the link and its secret.

        The user's earlier links of that purpose become invalid.
        """
        text, now = generate_secret(LINK_PREFIX), self.clock.now()
        link = OneTimeLink(self.access.compute_digest(text), purpose, user.id, org, now, now + LINK_LIFETIMES[purpose])
        await self.links.add(link)
        return link, text

    async def find(self, secret: str, purpose: LinkPurpose) -> OneTimeLink | None:
        """Return the link with that secret if it can still be used, or None."""
        if not is_well_formed_secret(secret, (LINK_PREFIX,)):
            return None
        return await self.links.find(self.access.compute_digest(secret), purpose, self.clock.now())

    async def invalidate_unused(self, user: str) -> None:
        """Invalidate all one-time links of the user that were not used yet."""
        await self.links.invalidate_unused(user)

    async def use(self, secret: str, purpose: LinkPurpose) -> OneTimeLink | None:
        """Mark the link with that secret as used and return it; None if it cannot be used."""
        if not is_well_formed_secret(secret, (LINK_PREFIX,)):
            return None
        return await self.links.use(self.access.compute_digest(secret), purpose, self.clock.now())
