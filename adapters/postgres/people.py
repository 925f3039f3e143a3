"""Users, sessions, one-time links, authenticators and outgoing mail in PostgreSQL, on the coordinator.

Values that may be used only once, such as links, are marked as used by a single update.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.orgs import build_organisation
from adapters.postgres.stores import (
    CoordinatorStore,
    build_field_params,
    execute_count,
    execute_one,
    fetch_all,
    fetch_first,
    fetch_scalar,
    load_statements,
)
from domain.access.model import ROLES, Credential, Principal
from domain.kernel.tenancy import Actor, Tenant
from domain.outbox.model import OutgoingMessage
from domain.outbox.ports import Outbox
from domain.people.factors import Authenticator, Passkey
from domain.people.model import (
    AuthMethod,
    LinkPurpose,
    OneTimeLink,
    SecurityEvent,
    Session,
    SessionKind,
    SignedIn,
    User,
    normalise_email,
)
from domain.people.ports import Factors, OneTimeLinks, Passkeys, People, Sessions
from domain.sso.model import is_barred

SQL = load_statements("people")


def _build_address_params(email: str) -> dict[str, str]:
    return {"email_key": normalise_email(email)}


def _build_link(digest: bytes, purpose: str, *rest: Any) -> OneTimeLink:
    return OneTimeLink(digest, LinkPurpose(purpose), *rest)


def _build_session_params(session: Session) -> dict[str, object]:
    return build_field_params(session) | {"methods": list(session.methods)}


def _build_session(*row: Any) -> Session:
    id_, user, org, livemode, digest, kind, methods, *rest = row
    return Session(id_, user, org, livemode, digest, SessionKind(kind), tuple(map(AuthMethod, methods)), *rest)


def _build_signed_in(*row: Any) -> SignedIn:
    session, user, role, obliged = _build_session(*row[:14]), User(*row[14:20]), row[20], row[21]
    if role is None or (obliged and is_barred(role, session.methods)):
        return SignedIn(session, user, None)
    return SignedIn(session, user, Principal(
        tenant=Tenant(row[22], session.livemode), actor=Actor("user", user.id), via="console", role=role, scopes=ROLES[role],
        organisation=build_organisation(*row[22:]), is_personal_token=True, is_console_session=True, has_fixed_mode=False,
    ))  # fmt: skip


class PostgresPeople(CoordinatorStore, People):
    """Users and their security events."""

    _sql = SQL
    get = fetch_first(User, "get_user")
    find_by_email = fetch_first(User, values=_build_address_params)
    save = execute_count("save_user")
    get_password_hash = fetch_scalar()
    set_password_hash = execute_count()
    record_event = execute_count()
    list_events = fetch_all(SecurityEvent)
    delete_events = execute_count()

    async def get_many(self, ids: Collection[str]) -> Mapping[str, User]:
        return {row[0]: User(*row) for row in await self._fetch_rows("get_users", ids=list(ids))}

    async def add(self, user: User) -> User:
        if await self._run("add_user", **build_field_params(user), email_key=user.email_key):
            return user
        return await self.find_by_email(user.email) or user

    async def add_with_password(self, user: User, password_hash: str, now: datetime) -> bool:
        values = {"email_key": user.email_key, "password": password_hash, "now": now}
        return await self._run("add_user_with_password", **build_field_params(user), **values) == 1


class PostgresSessions(CoordinatorStore, Sessions):
    """Sessions of users."""

    _sql = SQL
    add = execute_count("add_session", values=_build_session_params)
    list_by_user = fetch_all(_build_session, "list_sessions_by_user")
    save = execute_count("save_session", values=_build_session_params)
    record_use = execute_count("record_session_use")
    revoke = execute_count("revoke_sessions")

    async def find(self, digest: bytes) -> SignedIn | None:
        sessions = await self._find_all([digest])
        return sessions[0] if sessions else None

    async def find_tokens(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        return {
            signed_in.session.digest: (signed_in.session, signed_in.principal)
            for signed_in in await self._find_all(digests)
            if signed_in.principal is not None and signed_in.session.kind is SessionKind.TOKEN
        }

    async def delete_ended(self, before: datetime) -> int:
        return await self._run("delete_ended_sessions", before=before) + await self._run(
            "delete_expired_links", before=before
        )

    async def _find_all(self, digests: Collection[bytes]) -> list[SignedIn]:
        return await self._fetch_all(_build_signed_in, "find_sessions", digests=list(digests), token=SessionKind.TOKEN)


class PostgresOneTimeLinks(CoordinatorStore, OneTimeLinks):
    """One-time links of users."""

    _sql = SQL
    invalidate_unused = execute_count("delete_unused_links")
    find = fetch_first(_build_link, "find_link")
    use = fetch_first(_build_link, "use_link")

    async def add(self, link: OneTimeLink) -> None:
        values = build_field_params(link)
        async with self._begin() as system:
            await system.cursor.execute(SQL["delete_superseded_links"], values)
            await system.cursor.execute(SQL["add_link"], values)


class PostgresFactors(CoordinatorStore, Factors):
    """Authenticators and recovery codes of users."""

    _sql = SQL
    find_authenticator = fetch_first(Authenticator)
    use_totp_step = execute_one()
    use_code = execute_one()
    count_unused_codes = fetch_first(int)

    async def enrol(self, authenticator: Authenticator) -> Authenticator:
        await self._run("add_authenticator", **build_field_params(authenticator))
        return await self.find_authenticator(authenticator.user) or authenticator

    async def confirm(self, authenticator: Authenticator, step: int, digests: Sequence[bytes], now: datetime) -> bool:
        async with self._begin() as connection:
            values = build_field_params(authenticator) | {"step": step, "now": now}
            if await connection.run(SQL["confirm_authenticator"], values) != 1:
                return False
            await _replace_codes(connection, authenticator.user, digests)
        return True

    async def disenrol(self, user: str) -> bool:
        async with self._begin() as connection:
            existed = await connection.run(SQL["delete_authenticator"], {"user": user}) == 1
            await connection.run(SQL["delete_codes"], {"user": user})
        return existed

    async def replace_codes(self, user: str, digests: Sequence[bytes]) -> bool:
        async with self._begin() as connection:
            if await connection.run(SQL["lock_authenticator"], {"user": user}) != 1:
                return False
            await _replace_codes(connection, user, digests)
        return True


async def _replace_codes(connection: PooledConnection, user: str, digests: Sequence[bytes]) -> None:
    await connection.run(SQL["delete_codes"], {"user": user})
    await connection.run(SQL["add_codes"], {"user": user, "digests": list(digests)})


class PostgresPasskeys(CoordinatorStore, Passkeys):
    """Passkeys of users, and the challenges that a passkey must sign."""

    _sql = SQL
    add = execute_one("add_passkey")
    list_by_user = fetch_all(Passkey, "list_passkeys_by_user")
    find = fetch_first(Passkey, "find_passkey")
    record_signature = execute_one()
    rename = execute_one("rename_passkey")
    remove = execute_one("remove_passkey")
    add_challenge = execute_count()
    use_challenge = execute_one()
    delete_challenges = execute_count()


class PostgresOutbox(CoordinatorStore, Outbox):
    """Outgoing mail. One update claims due messages, so that no other scheduler sends them as well."""

    _sql = SQL
    add = execute_count("add_mail")
    list_latest = fetch_all(OutgoingMessage, "list_latest_mail")
    claim_due = fetch_all(OutgoingMessage, "claim_due_mail")
    record_sent = execute_count("record_mail_sent")
    record_failure = execute_count("record_mail_failure")
    delete_created_before = execute_count("delete_mail")
