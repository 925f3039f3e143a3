"""Users, sessions, one-time links, factors and outgoing mail in PostgreSQL, on the coordinator; one update consumes a one-time value."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.orgs import organisation_of
from adapters.postgres.stores import CoordinatorStore, done, every, first, run, statements, value, values_of
from domain.access.model import ROLES, Credential, Principal
from domain.kernel.tenancy import Actor, Tenant
from domain.outbox.model import OutgoingMessage
from domain.outbox.ports import Outbox
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
from domain.people.ports import Factors, OneTimeLinks, Passkeys, People, Sessions
from domain.sso.model import is_barred

SQL = statements("people")


def _by_address(email: str) -> dict[str, str]:
    return {"email_key": email_key(email)}


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


class PostgresPeople(CoordinatorStore, People):
    """Users and their security events."""

    _sql = SQL
    get = first(User, "user")
    by_email = first(User, values=_by_address)
    change = run("change_user")
    password = value()
    set_password = run()
    note = run()
    events = every(SecurityEvent)
    forget_events = run()

    async def several(self, ids: Collection[str]) -> Mapping[str, User]:
        return {row[0]: User(*row) for row in await self._rows("several", ids=list(ids))}

    async def add(self, user: User) -> User:
        if await self._run("add_user", **values_of(user), email_key=user.email_key):
            return user
        return await self.by_email(user.email) or user

    async def set_up(self, user: User, encoded: str, now: datetime) -> bool:
        values = {"email_key": user.email_key, "password": encoded, "now": now}
        return await self._run("set_up_user", **values_of(user), **values) == 1


class PostgresSessions(CoordinatorStore, Sessions):
    """Sessions of users."""

    _sql = SQL
    add = run("add_session", values=_values)
    of_user = every(_session, "sessions_of")
    save = run("save_session", values=_values)
    seen = run("seen_session")
    revoke = run("revoke_sessions")

    async def find(self, digest: bytes) -> SignedIn | None:
        sessions = await self._find_all([digest])
        return sessions[0] if sessions else None

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        return {
            signed_in.session.digest: (signed_in.session, signed_in.principal)
            for signed_in in await self._find_all(digests)
            if signed_in.principal is not None and signed_in.session.kind is SessionKind.TOKEN
        }

    async def forget(self, before: datetime) -> int:
        return await self._run("forget_sessions", before=before) + await self._run("forget_links", before=before)

    async def _find_all(self, digests: Collection[bytes]) -> list[SignedIn]:
        return await self._every(_signed_in, "found", digests=list(digests), token=SessionKind.TOKEN)


class PostgresOneTimeLinks(CoordinatorStore, OneTimeLinks):
    """One-time links of users."""

    _sql = SQL
    withdraw = run("withdraw_links")
    find = first(_link, "link")
    use = first(_link, "use_link")

    async def add(self, link: OneTimeLink) -> None:
        values = values_of(link)
        async with self._transaction() as system:
            await system.cursor.execute(SQL["supersede_links"], values)
            await system.cursor.execute(SQL["add_link"], values)


class PostgresFactors(CoordinatorStore, Factors):
    """Authenticators and recovery codes of users."""

    _sql = SQL
    authenticator = first(Authenticator)
    take_step = done()
    use_code = done()
    codes_left = first(int)

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

    async def disenrol(self, user: str) -> bool:
        async with self._transaction() as link:
            existed = await link.run(SQL["disenrol"], {"user": user}) == 1
            await link.run(SQL["drop_codes"], {"user": user})
        return existed

    async def replace_codes(self, user: str, digests: Sequence[bytes]) -> bool:
        async with self._transaction() as link:
            if await link.run(SQL["hold"], {"user": user}) != 1:
                return False
            await _replace_codes(link, user, digests)
        return True


async def _replace_codes(link: PooledConnection, user: str, digests: Sequence[bytes]) -> None:
    await link.run(SQL["drop_codes"], {"user": user})
    await link.run(SQL["add_codes"], {"user": user, "digests": list(digests)})


class PostgresPasskeys(CoordinatorStore, Passkeys):
    """Passkeys of users, and challenges."""

    _sql = SQL
    add = done("add_passkey")
    of_user = every(Passkey, "passkeys_of")
    find = first(Passkey, "passkey")
    used = done("passkey_used")
    rename = done("rename_passkey")
    remove = done("remove_passkey")
    challenge = run("add_challenge")
    take_challenge = done()
    forget_challenges = run()


class PostgresOutbox(CoordinatorStore, Outbox):
    """Outgoing mail; an update claims rows, so that a second scheduler does not find them."""

    _sql = SQL
    add = run("add_mail")
    latest = every(OutgoingMessage, "latest_mail")
    claim = every(OutgoingMessage, "claim_mail")
    sent = run("mail_sent")
    failed = run("mail_failed")
    forget = run("forget_mail")
