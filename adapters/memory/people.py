"""People, their sessions and their links in memory."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from adapters.memory.orgs import MEMBERS, ORGS
from adapters.memory.sso import obliged
from adapters.memory.table import EVERYWHERE, MemoryDatabase, Table
from domain.access.model import ROLES, Credential, Principal
from domain.kernel.tenancy import Actor, Tenant
from domain.people.model import OneTimeLink, Purpose, SecurityEvent, Session, SessionKind, SignedIn, User, email_key
from domain.sso.model import is_barred

USERS: Final = Table[User]("users", lambda user: user.id)
SESSIONS: Final = Table[Session]("sessions", lambda session: session.id)


class MemoryPeople:
    """People."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store
        self._passwords: dict[str, str] = {}
        self._events: list[SecurityEvent] = []

    async def get(self, id: str) -> User | None:
        return self._store.committed(USERS, EVERYWHERE).get(id)

    async def several(self, ids: Collection[str]) -> Mapping[str, User]:
        users = self._store.committed(USERS, EVERYWHERE)
        return {id_: users[id_] for id_ in ids if id_ in users}

    async def by_email(self, email: str) -> User | None:
        users = self._store.committed(USERS, EVERYWHERE).values()
        return next((user for user in users if user.email_key == email_key(email)), None)

    async def add(self, user: User) -> User:
        if (known := await self.by_email(user.email)) is not None:
            return known
        self._store.write(USERS, EVERYWHERE, user)
        return user

    async def set_up(self, user: User, encoded: str, now: datetime) -> bool:
        if await self.by_email(user.email) is not None:
            return False
        self._store.write(USERS, EVERYWHERE, user)
        self._passwords[user.id] = encoded
        return True

    async def change(self, user: User) -> None:
        if (known := await self.get(user.id)) is not None:
            self._store.write(USERS, EVERYWHERE, replace(known, name=user.name, verified_at=user.verified_at))

    async def password(self, user: str) -> str | None:
        return self._passwords.get(user)

    async def set_password(self, user: str, encoded: str, now: datetime) -> None:
        if await self.get(user) is not None:
            self._passwords[user] = encoded

    async def note(self, event: SecurityEvent) -> None:
        self._events.append(event)

    async def events(self, user: str, limit: int) -> Sequence[SecurityEvent]:
        own = [event for event in self._events if event.user == user]
        return sorted(own, key=lambda event: event.id, reverse=True)[:limit]

    async def forget_events(self, before: datetime) -> int:
        kept = [event for event in self._events if event.at >= before]
        gone, self._events = len(self._events) - len(kept), kept
        return gone


class MemoryOneTimeLinks:
    """OneTimeLinks."""

    def __init__(self) -> None:
        self._links: dict[bytes, OneTimeLink] = {}

    async def add(self, link: OneTimeLink) -> None:
        same = [one for one in self._links.values() if (one.user, one.purpose) == (link.user, link.purpose)]
        for one in same:
            del self._links[one.digest]
        self._links[link.digest] = link

    async def withdraw(self, user: str) -> None:
        for one in [link for link in self._links.values() if link.user == user]:
            del self._links[one.digest]

    async def find(self, digest: bytes, purpose: Purpose, now: datetime) -> OneTimeLink | None:
        link = self._links.get(digest)
        return link if link is not None and link.purpose is purpose and link.expires_at > now else None

    async def use(self, digest: bytes, purpose: Purpose, now: datetime) -> OneTimeLink | None:
        link = await self.find(digest, purpose, now)
        if link is not None:
            del self._links[digest]
        return link

    def forget(self, before: datetime) -> int:
        """Delete those that were over before then."""
        over = [link.digest for link in self._links.values() if link.expires_at < before]
        for digest in over:
            del self._links[digest]
        return len(over)


class MemorySessions:
    """Sessions."""

    def __init__(self, store: MemoryDatabase, links: MemoryOneTimeLinks) -> None:
        self._store, self._links = store, links

    async def add(self, session: Session) -> None:
        self._store.write(SESSIONS, EVERYWHERE, session)

    async def find(self, digest: bytes) -> SignedIn | None:
        session = next((one for one in self._all() if one.digest == digest), None)
        user = self._store.committed(USERS, EVERYWHERE).get(session.user) if session is not None else None
        if session is None or user is None:
            return None
        return SignedIn(session, user, self._principal(session))

    async def of_user(self, user: str) -> Sequence[Session]:
        own = [one for one in self._all() if one.user == user and one.revoked_at is None]
        return sorted(own, key=lambda one: one.id, reverse=True)

    async def save(self, session: Session) -> None:
        known = self._store.committed(SESSIONS, EVERYWHERE).get(session.id)
        if known is None or known.revoked_at is not None:
            return
        seen, confirmed = max(known.seen_at, session.seen_at), max(known.confirmed_at, session.confirmed_at)
        looked_at = {"org": session.org, "livemode": session.livemode, "methods": session.methods}
        self._store.write(
            SESSIONS, EVERYWHERE, replace(known, seen_at=seen, confirmed_at=confirmed, **looked_at)  # type: ignore[arg-type]
        )  # fmt: skip

    async def seen(self, id: str, now: datetime) -> None:
        known = self._store.committed(SESSIONS, EVERYWHERE).get(id)
        if known is not None and known.revoked_at is None:
            self._store.write(SESSIONS, EVERYWHERE, replace(known, seen_at=max(known.seen_at, now)))

    async def revoke(self, ids: Collection[str], now: datetime) -> int:
        ended = [one for one in self._all() if one.id in ids and one.revoked_at is None]
        for session in ended:
            self._store.write(SESSIONS, EVERYWHERE, replace(session, revoked_at=now))
        return len(ended)

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        found: dict[bytes, tuple[Credential, Principal]] = {}
        for digest in digests:
            one = await self.find(digest)
            if one is not None and one.principal is not None and one.session.kind is SessionKind.TOKEN:
                found[digest] = one.session, one.principal
        return found

    async def forget(self, before: datetime) -> int:
        over = [one for one in self._all() if one.expires_at < before or (one.revoked_at and one.revoked_at < before)]
        for session in over:
            self._store.erase(SESSIONS, EVERYWHERE, session.id)
        return len(over) + self._links.forget(before)

    def _all(self) -> Sequence[Session]:
        return list(self._store.committed(SESSIONS, EVERYWHERE).values())

    def _principal(self, session: Session) -> Principal | None:
        orgs = self._store.committed(ORGS, EVERYWHERE)
        member = self._store.committed(MEMBERS, EVERYWHERE).get(f"{session.org}/{session.user}")
        if session.org is None or member is None or session.org not in orgs:
            return None
        earlier = session.kind is SessionKind.TOKEN and session.created_at < member.created_at
        if earlier or (obliged(self._store, member) and is_barred(member.role, session.methods)):
            return None
        return Principal(
            tenant=Tenant(session.org, session.livemode), actor=Actor("user", session.user), via="console", role=member.role,
            scopes=ROLES[member.role], organisation=orgs[session.org], person=True, session=True, mode_fixed=False,
        )  # fmt: skip
