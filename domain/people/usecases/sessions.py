"""Sessions, checked at each request, and one-time links that begin them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.access.model import SESSION_PREFIX, is_secret
from domain.access.usecases import AccessService, secret_with
from domain.kernel.errors import NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.orgs.model import Organisation
from domain.orgs.ports import Memberships
from domain.people.model import (
    LIFETIME,
    LINK_LASTS,
    LONGEST_AGENT,
    SEEN_EVERY,
    Method,
    OneTimeLink,
    Purpose,
    Session,
    SessionKind,
    SignedIn,
    User,
)
from domain.people.ports import OneTimeLinks, Sessions, SignInRules
from ports.clock import Clock

PERSON_PREFIX = "svc_person_"
TOKEN_LASTS = timedelta(hours=8)
"""Default lifetime of an operator's token for a member."""
MOST_ORGS = 100
"""Maximum organisations of one person."""


class SignInElsewhere(PermissionDenied):
    """This organisation requires another way to sign in. Use single sign-on, or the method that it accepts."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Address and User-Agent of a browser."""

    address: str
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class SessionService:
    """Sessions of people. Secrets are shown once; keyed hashes are stored."""

    sessions: Sessions
    memberships: Memberships
    access: AccessService
    clock: Clock
    rules: SignInRules | None = None

    async def find(self, cookie: str) -> SignedIn | None:
        """Return the active session with that cookie, or None, and record its use periodically."""
        if not is_secret(cookie, (SESSION_PREFIX,)):
            return None
        found = await self.sessions.find(self.access.digest(cookie))
        now = self.clock.now()
        if found is None or found.session.kind is not SessionKind.CONSOLE or not found.session.is_in_force(now):
            return None
        if now >= found.session.seen_at + SEEN_EVERY:
            await self.sessions.seen(found.session.id, now)
        return found

    async def begin(
        self, user: User, methods: Sequence[Method], visitor: Visitor, org: str | None = None
    ) -> tuple[Session, str]:
        """Begin a session and return it with its cookie.

        It opens `org`, or the first organisation that admits these methods. Raises SignInElsewhere if none does.
        """
        org = await self._choose_org(user.id, org, methods)
        if org is not None and self.rules is not None:
            await self.rules.note(user.id, org, methods)
        return await self._add(user, org, tuple(methods), visitor, SessionKind.CONSOLE, LIFETIME)

    async def token(self, user: User, org: str, lasts: timedelta = TOKEN_LASTS) -> tuple[Session, str]:
        """Create a bearer token with which a script acts as that person (`joinery token create`)."""
        return await self._add(user, org, (Method.OPERATOR,), Visitor("operator"), SessionKind.TOKEN, lasts)

    async def look_at(self, session: Session, org: str, livemode: bool) -> Session:
        """Switch organisation and mode.

        Raises NotFound if the person is no member, SignInElsewhere if the organisation requires another method.
        """
        await self.let_in(session, org)
        changed = replace(session, org=org, livemode=livemode)
        await self.sessions.save(changed)
        return changed

    async def let_in(self, session: Session, org: str) -> None:
        """Check that the session's person may act in the organisation with their methods.

        Raises NotFound if they are no member, SignInElsewhere if the organisation requires another method.
        """
        if org not in await self._org_ids(session.user):
            raise NotFound
        if org != session.org and self.rules is not None:
            if not await self.rules.allows(session.user, org, session.methods):
                raise SignInElsewhere
            await self.rules.note(session.user, org, session.methods)

    async def open_to(self, session: Session) -> list[Organisation]:
        """Return the person's organisations that admit the session's methods."""
        found = (await self.memberships.of_user(session.user, PageRequest(limit=MOST_ORGS))).items
        if self.rules is None:
            return list(found)
        return [
            org
            for org in found
            if org.id == session.org or await self.rules.allows(session.user, org.id, session.methods)
        ]

    async def confirm(self, session: Session, method: Method) -> Session:
        """Record that the person has authenticated again."""
        methods = session.methods if method in session.methods else (*session.methods, method)
        changed = replace(session, methods=methods, confirmed_at=self.clock.now())
        await self.sessions.save(changed)
        return changed

    async def renew(self, session: Session, user: User, visitor: Visitor) -> tuple[Session, str]:
        """Replace the session by one with another secret, after renewed authentication."""
        fresh, cookie = await self.begin(user, session.methods, visitor, session.org)
        if fresh.org == session.org and session.org is not None and not session.livemode:
            fresh = await self.look_at(fresh, session.org, session.livemode)
        await self.sessions.revoke((session.id,), self.clock.now())
        return fresh, cookie

    async def list_of(self, user: str) -> Sequence[Session]:
        """Return the user's active sessions, newest first."""
        now = self.clock.now()
        return [session for session in await self.sessions.of_user(user) if session.is_in_force(now)]

    async def revoke(self, user: str, id: str) -> None:
        """Revoke a session. Raises NotFound if that person has no such session."""
        own = {session.id for session in await self.sessions.of_user(user)}
        if id not in own or not await self.sessions.revoke((id,), self.clock.now()):
            raise NotFound

    async def revoke_all(self, user: str, but: str | None = None) -> int:
        """Revoke all of a person's sessions and tokens except `but`; return their number."""
        ids = [session.id for session in await self.sessions.of_user(user) if session.id != but]
        return await self.sessions.revoke(ids, self.clock.now())

    async def end_tokens(self, user: str, org: str) -> int:
        """Revoke the person's tokens for an organisation that they have left."""
        own = await self.sessions.of_user(user)
        ids = [one.id for one in own if one.kind is SessionKind.TOKEN and one.org == org]
        return await self.sessions.revoke(ids, self.clock.now()) if ids else 0

    async def forget(self, before: datetime) -> int:
        """Delete what ended before then; return the number of rows."""
        return await self.sessions.forget(before)

    async def _choose_org(self, user: str, org: str | None, methods: Sequence[Method]) -> str | None:
        """Return the organisation, or the first that admits the methods if it does not. Raises SignInElsewhere."""
        ids = await self._org_ids(user)
        for one in sorted(ids, key=lambda id_: id_ != org):
            if self.rules is None or await self.rules.allows(user, one, methods):
                return one
        if ids:
            raise SignInElsewhere
        return None

    async def _org_ids(self, user: str) -> list[str]:
        page = await self.memberships.of_user(user, PageRequest(limit=MOST_ORGS))
        return [organisation.id for organisation in page.items]

    async def _add(
        self,
        user: User,
        org: str | None,
        methods: tuple[Method, ...],
        visitor: Visitor,
        kind: SessionKind,
        lasts: timedelta,
    ) -> tuple[Session, str]:
        text = secret_with(SESSION_PREFIX if kind is SessionKind.CONSOLE else PERSON_PREFIX)
        now = self.clock.now()
        session = Session(
            id=new_id("ses"),
            user=user.id,
            org=org,
            livemode=True,
            digest=self.access.digest(text),
            kind=kind,
            methods=methods,
            address=visitor.address,
            user_agent=visitor.user_agent[:LONGEST_AGENT],
            created_at=now,
            seen_at=now,
            confirmed_at=now,
            expires_at=now + lasts,
        )
        await self.sessions.add(session)
        return session, text


LINK_PREFIX = "svc_link_"


@dataclass(frozen=True, slots=True)
class LinkService:
    """Creation and use of one-time links."""

    links: OneTimeLinks
    access: AccessService
    clock: Clock

    async def make(self, user: User, purpose: Purpose, org: str | None = None) -> tuple[OneTimeLink, str]:
        """Create a link and return it with its secret; earlier links for the purpose become invalid."""
        text, now = secret_with(LINK_PREFIX), self.clock.now()
        link = OneTimeLink(self.access.digest(text), purpose, user.id, org, now, now + LINK_LASTS[purpose])
        await self.links.add(link)
        return link, text

    async def look(self, text: str, purpose: Purpose) -> OneTimeLink | None:
        """Return the link if it can be used."""
        if not is_secret(text, (LINK_PREFIX,)):
            return None
        return await self.links.find(self.access.digest(text), purpose, self.clock.now())

    async def withdraw(self, user: str) -> None:
        """Invalidate the person's unused links."""
        await self.links.withdraw(user)

    async def use(self, text: str, purpose: Purpose) -> OneTimeLink | None:
        """Use the link and return it; None if it cannot be used."""
        if not is_secret(text, (LINK_PREFIX,)):
            return None
        return await self.links.use(self.access.digest(text), purpose, self.clock.now())
