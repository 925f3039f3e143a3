"""People with their sessions, links, factors and mail in PostgreSQL: at the coordinator. What is used once is used by one update."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.orgs import organisation_of
from adapters.postgres.stores import CoordinatorStore, statements, values_of
from domain.access.model import ROLES, Credential, Principal
from domain.kernel.tenancy import Actor, Tenant
from domain.outbox.model import OutgoingMessage
from domain.people.factors import Authenticator, Passkey
from domain.people.model import (
    Method,
    OneTimeLink,
    Purpose,
    SecurityEvent,
    Session,
    SessionKind,
    SignedIn,
    User,
    email_key,
)
from domain.sso.model import is_barred

SQL = statements("people")


class PostgresPeople(CoordinatorStore):
    """People."""

    _sql = SQL

    async def get(self, id: str) -> User | None:
        return await self._first(User, "user", id=id)

    async def several(self, ids: Collection[str]) -> Mapping[str, User]:
        return {row[0]: User(*row) for row in await self._rows("several", ids=list(ids))}

    async def by_email(self, email: str) -> User | None:
        return await self._first(User, "by_email", email_key=email_key(email))

    async def add(self, user: User) -> User:
        if await self._run("add_user", **values_of(user), email_key=user.email_key):
            return user
        return await self.by_email(user.email) or user

    async def set_up(self, user: User, encoded: str, now: datetime) -> bool:
        values = {"email_key": user.email_key, "password": encoded, "now": now}
        return await self._run("set_up_user", **values_of(user), **values) == 1

    async def change(self, user: User) -> None:
        await self._run("change_user", **values_of(user))

    async def password(self, user: str) -> str | None:
        encoded: str | None = await self._value("password", id=user)
        return encoded

    async def set_password(self, user: str, encoded: str, now: datetime) -> None:
        await self._run("set_password", id=user, password=encoded, now=now)

    async def note(self, event: SecurityEvent) -> None:
        await self._run("note", **values_of(event))

    async def events(self, user: str, limit: int) -> Sequence[SecurityEvent]:
        return await self._every(SecurityEvent, "events", user=user, limit=limit)

    async def forget_events(self, before: datetime) -> int:
        return await self._run("forget_events", before=before)


class PostgresSessions(CoordinatorStore):
    """Sessions."""

    _sql = SQL

    async def add(self, session: Session) -> None:
        await self._run("add_session", **_values(session))

    async def find(self, digest: bytes) -> SignedIn | None:
        found = await self._found([digest])
        return found[0] if found else None

    async def of_user(self, user: str) -> Sequence[Session]:
        return await self._every(_session, "sessions_of", user=user)

    async def save(self, session: Session) -> None:
        await self._run("save_session", **_values(session))

    async def seen(self, id: str, now: datetime) -> None:
        await self._run("seen_session", id=id, now=now)

    async def revoke(self, ids: Collection[str], now: datetime) -> int:
        return await self._run("revoke_sessions", ids=list(ids), now=now)

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        return {
            one.session.digest: (one.session, one.principal)
            for one in await self._found(digests)
            if one.principal is not None and one.session.kind is SessionKind.TOKEN
        }

    async def forget(self, before: datetime) -> int:
        return await self._run("forget_sessions", before=before) + await self._run("forget_links", before=before)

    async def _found(self, digests: Collection[bytes]) -> list[SignedIn]:
        return await self._every(_signed_in, "found", digests=list(digests), token=SessionKind.TOKEN)


class PostgresOneTimeLinks(CoordinatorStore):
    """OneTimeLinks."""

    _sql = SQL

    async def add(self, link: OneTimeLink) -> None:
        values = values_of(link)
        async with self._transaction() as system:
            await system.cursor.execute(SQL["supersede_links"], values)
            await system.cursor.execute(SQL["add_link"], values)

    async def withdraw(self, user: str) -> None:
        await self._run("withdraw_links", user=user)

    async def find(self, digest: bytes, purpose: Purpose, now: datetime) -> OneTimeLink | None:
        return await self._first(_link, "link", digest=digest, purpose=purpose, now=now)

    async def use(self, digest: bytes, purpose: Purpose, now: datetime) -> OneTimeLink | None:
        return await self._first(_link, "use_link", digest=digest, purpose=purpose, now=now)


class PostgresFactors(CoordinatorStore):
    """Factors."""

    _sql = SQL

    async def authenticator(self, user: str) -> Authenticator | None:
        return await self._first(Authenticator, "authenticator", user=user)

    async def enrol(self, authenticator: Authenticator) -> Authenticator:
        await self._run("enrol", **values_of(authenticator))
        return await self.authenticator(authenticator.user) or authenticator

    async def confirm(self, authenticator: Authenticator, step: int, digests: Sequence[bytes], now: datetime) -> bool:
        async with self._transaction() as link:
            values = values_of(authenticator) | {"step": step, "now": now}
            if await link.run(SQL["confirm"], values) != 1:
                return False
            await _replace_codes(link, authenticator.user, digests)
        return True

    async def take_step(self, user: str, step: int) -> bool:
        return await self._run("take_step", user=user, step=step) == 1

    async def disenrol(self, user: str) -> bool:
        async with self._transaction() as link:
            ended = await link.run(SQL["disenrol"], {"user": user}) == 1
            await link.run(SQL["drop_codes"], {"user": user})
        return ended

    async def replace_codes(self, user: str, digests: Sequence[bytes]) -> bool:
        async with self._transaction() as link:
            if await link.run(SQL["hold"], {"user": user}) != 1:
                return False
            await _replace_codes(link, user, digests)
        return True

    async def use_code(self, user: str, digest: bytes, now: datetime) -> bool:
        return await self._run("use_code", user=user, digest=digest, now=now) == 1

    async def codes_left(self, user: str) -> int:
        return int(await self._value("codes_left", user=user))


async def _replace_codes(link: PooledConnection, user: str, digests: Sequence[bytes]) -> None:
    await link.run(SQL["drop_codes"], {"user": user})
    await link.run(SQL["add_codes"], {"user": user, "digests": list(digests)})


class PostgresPasskeys(CoordinatorStore):
    """Passkeys."""

    _sql = SQL

    async def add(self, passkey: Passkey) -> bool:
        return await self._run("add_passkey", **values_of(passkey)) == 1

    async def of_user(self, user: str) -> Sequence[Passkey]:
        return await self._every(Passkey, "passkeys_of", user=user)

    async def find(self, credential: bytes) -> Passkey | None:
        return await self._first(Passkey, "passkey", credential=credential)

    async def used(self, passkey: Passkey, sign_count: int, now: datetime) -> bool:
        return await self._run("passkey_used", id=passkey.id, sign_count=sign_count, now=now) == 1

    async def rename(self, user: str, id: str, name: str) -> bool:
        return await self._run("rename_passkey", user=user, id=id, name=name) == 1

    async def remove(self, user: str, id: str) -> bool:
        return await self._run("remove_passkey", user=user, id=id) == 1

    async def challenge(self, digest: bytes, user: str | None, expires_at: datetime) -> None:
        await self._run("add_challenge", digest=digest, user=user, expires_at=expires_at)

    async def take_challenge(self, digest: bytes, user: str | None, now: datetime) -> bool:
        return await self._run("take_challenge", digest=digest, user=user, now=now) == 1

    async def forget_challenges(self, before: datetime) -> int:
        return await self._run("forget_challenges", before=before)


class PostgresOutbox(CoordinatorStore):
    """Outbox. Rows are claimed by an update, so that a second scheduler finds none of them."""

    _sql = SQL

    async def add(self, message: OutgoingMessage) -> None:
        await self._run("add_mail", **values_of(message))

    async def latest(self, limit: int) -> Sequence[OutgoingMessage]:
        return await self._every(OutgoingMessage, "latest_mail", limit=limit)

    async def claim(
        self, now: datetime, until: datetime, not_before: datetime, limit: int
    ) -> Sequence[OutgoingMessage]:
        values = {"now": now, "until": until, "not_before": not_before, "limit": limit}
        return await self._every(OutgoingMessage, "claim_mail", **values)

    async def sent(self, id: str, now: datetime) -> None:
        await self._run("mail_sent", id=id, now=now)

    async def failed(self, id: str, failure: str, next_at: datetime | None) -> None:
        await self._run("mail_failed", id=id, failure=failure, next_at=next_at)

    async def forget(self, before: datetime) -> int:
        return await self._run("forget_mail", before=before)


def _link(digest: bytes, purpose: str, *rest: Any) -> OneTimeLink:
    return OneTimeLink(digest, Purpose(purpose), *rest)


def _values(session: Session) -> dict[str, object]:
    return values_of(session) | {"methods": list(session.methods)}


def _session(*row: Any) -> Session:
    id_, user, org, livemode, digest, kind, methods, *rest = row
    return Session(id_, user, org, livemode, digest, SessionKind(kind), tuple(map(Method, methods)), *rest)


def _signed_in(*row: Any) -> SignedIn:
    session, user, role, obliged = _session(*row[:14]), User(*row[14:19]), row[19], row[20]
    if role is None or (obliged and is_barred(role, session.methods)):
        return SignedIn(session, user, None)
    return SignedIn(session, user, Principal(
        tenant=Tenant(row[21], session.livemode), actor=Actor("user", user.id), via="console", role=role, scopes=ROLES[role],
        organisation=organisation_of(*row[21:]), person=True, session=True, mode_fixed=False,
    ))  # fmt: skip
