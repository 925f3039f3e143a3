"""OAuth in PostgreSQL: apps and grants on every node, changed in their organisation's transactions; sign-ins with the coordinator."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from adapters.postgres.coordinator_store import CoordinatorStore, Row
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.orgs import organisation_of
from adapters.postgres.session import Session
from adapters.postgres.sqlfile import statements
from domain.access.model import Credential, Principal
from domain.kernel.tenancy import Actor, Tenant
from domain.oauth.model import (
    AccessToken,
    App,
    AppKind,
    Audience,
    Code,
    Consent,
    Device,
    Family,
    Grant,
    HeldToken,
    Origin,
    Token,
    TokenKind,
)

SQL = statements("oauth")


class PostgresAppStore:
    """AppStore."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, app: App) -> None:
        async with self._session.owning():
            await self._session.run(SQL["add_app"], **_values(app))

    async def get(self, id: str) -> App | None:
        row = await self._session.one(SQL["own_app"], id=id)
        return _app(row) if row else None

    async def all(self) -> Sequence[App]:
        return [_app(row) for row in await self._session.all(SQL["own_apps"])]

    async def save(self, app: App) -> None:
        async with self._session.owning():
            await self._session.run(SQL["save_app"], **_values(app))

    async def remove(self, id: str) -> bool:
        async with self._session.owning():
            return await self._session.run(SQL["remove_app"], id=id) == 1

    async def grants(self, user: str | None = None) -> Sequence[Grant]:
        return [_grant(row) for row in await self._session.all(SQL["grants"], user=user)]

    async def grant(self, app: str, user: str) -> Grant | None:
        row = await self._session.one(SQL["grant"], app=app, user=user)
        return _grant(row) if row else None

    async def put_grant(self, grant: Grant) -> None:
        async with self._session.owning():
            await self._session.run(SQL["put_grant"], **_values(grant))


class PostgresTokenStore(CoordinatorStore):
    """TokenStore, and the proofs of its access tokens."""

    _sql = SQL

    async def app(self, client_id: str) -> App | None:
        row = await self._one("app", client_id=client_id)
        return _app(row) if row else None

    async def app_of(self, id: str) -> App | None:
        row = await self._one("app_of", id=id)
        return _app(row) if row else None

    async def keep_app(self, app: App) -> App:
        row = await self._one("keep_client", **_values(app))
        return _app(row) if row else app

    async def add_code(self, code: Code) -> None:
        await self._run("add_code", **_values(code), **_consent_values(code.consent))

    async def code(self, digest: bytes) -> Code | None:
        row = await self._one("code", digest=digest)
        return _code(row) if row else None

    async def token(self, digest: bytes) -> HeldToken | None:
        row = await self._one("token", digest=digest)
        if row is None:
            return None
        return HeldToken(_token(row[:10]), Family(*row[10:19]), row[19])

    async def redeem(self, code: Code, family: Family, tokens: Collection[Token]) -> bool:
        async with self._pool.system() as link, link.connection.transaction():
            used = await link.cursor.execute(SQL["use_code"], {"digest": code.digest, "now": family.created_at})
            if used.rowcount == 1:
                await _issue(link, family, tokens)
                return True
        return False

    async def rotate(self, held: HeldToken, tokens: Collection[Token], now: datetime) -> bool:
        values = {"digest": held.token.digest, "used_at": held.token.used_at, "family": held.family.id, "now": now}
        async with self._pool.system() as link, link.connection.transaction():
            await link.cursor.execute(SQL["lock_family"], values)
            if (await link.cursor.execute(SQL["use_token"], values)).rowcount != 1:
                return False
            await link.cursor.execute(SQL["replace_heirs"], values)
            await _add_tokens(link, tokens)
        return True

    async def issue(self, family: Family, tokens: Collection[Token]) -> None:
        async with self._pool.system() as link, link.connection.transaction():
            await _issue(link, family, tokens)

    async def end(self, family: str, why: str, now: datetime) -> bool:
        return await self._run("end_family", id=family, why=why, now=now) == 1

    async def end_token(self, digest: bytes, now: datetime) -> None:
        await self._run("end_token", digest=digest, now=now)

    async def add_device(self, device: Device) -> bool:
        return await self._run("add_device", **_values(device)) == 1

    async def device(self, digest: bytes) -> Device | None:
        row = await self._one("device", digest=digest)
        return _device(row) if row else None

    async def device_of_user_code(self, digest: bytes, now: datetime) -> Device | None:
        row = await self._one("device_of_user_code", user_code=digest, now=now)
        return _device(row) if row else None

    async def save_poll(self, device: Device) -> None:
        await self._run("save_poll", **_values(device))

    async def decide(self, device: Device) -> bool:
        return await self._run("decide", **_values(device), **_consent_values(device.consent)) == 1

    async def take(self, device: Device, family: Family, tokens: Collection[Token], now: datetime) -> bool:
        async with self._pool.system() as link, link.connection.transaction():
            used = await link.cursor.execute(SQL["use_device"], {"digest": device.digest, "now": now})
            if used.rowcount == 1:
                await _issue(link, family, tokens)
                return True
        return False

    async def used(self, app: App, now: datetime) -> None:
        await self._run("used_client", client_id=app.client_id, now=now)

    async def purge(self, now: datetime, unused_since: datetime) -> int:
        gone = 0
        for what in ("families", "tokens", "codes", "devices", "clients"):
            gone += await self._run(f"purge_{what}", now=now, unused_since=unused_since)
        return gone

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        return {bytes(row[0]): _proof(row) for row in await self._rows("proofs", digests=list(digests))}


async def _issue(link: PooledConnection, family: Family, tokens: Collection[Token]) -> None:
    values = _values(family) | {"organisation": family.org, "grant_id": family.grant}
    await link.cursor.execute(SQL["add_family"], values)
    await _add_tokens(link, tokens)


async def _add_tokens(link: PooledConnection, tokens: Collection[Token]) -> None:
    for token in tokens:
        await link.cursor.execute(SQL["add_token"], _values(token))


def _values(row: Any) -> dict[str, Any]:
    """The fields as parameters: sets sorted, enumerations as texts. The organisation is the session's, whatever a row says."""
    return {field.name: _plain(getattr(row, field.name)) for field in fields(row) if field.name != "org"}


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, (AppKind, Audience, Origin, TokenKind)) else value


def _consent_values(consent: Consent | None) -> dict[str, Any]:
    user, org, grant = (consent.user, consent.org, consent.grant) if consent else (None, None, None)
    return {"user": user, "organisation": org, "grant_id": grant}


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _audience(value: str | None) -> Audience | None:
    return Audience(value) if value else None


def _app(row: Row) -> App:
    id_, client_id, kind, origin, name, uris, scopes, created, updated, org, made_by, digest, *rest = row
    return App(
        id_, client_id, AppKind(kind), Origin(origin), name, tuple(uris), frozenset(scopes), created, updated, org,
        made_by, _bytes(digest), *rest,
    )  # fmt: skip


def _grant(row: Row) -> Grant:
    id_, org, app, app_name, user, scopes, created, updated, revoked = row
    return Grant(id_, org, app, app_name, user, frozenset(scopes), created, updated, revoked)


def _code(row: Row) -> Code:
    digest, app, user, org, grant, uri, challenge, scopes, audience, *rest = row
    return Code(
        bytes(digest), app, Consent(user, org, grant), uri, challenge, frozenset(scopes), _audience(audience), *rest
    )


def _token(row: Row) -> Token:
    digest, family, kind, scopes, audience, created, expires, parent, *rest = row
    return Token(
        bytes(digest), family, TokenKind(kind), frozenset(scopes), _audience(audience), created, expires,
        _bytes(parent), *rest,
    )  # fmt: skip


def _device(row: Row) -> Device:
    digest, user_code, app, scopes, audience, created, expires, family, interval, polled, approved, *rest = row
    user, org, grant, used_at = rest
    consent = Consent(user, org, grant) if user else None
    return Device(
        bytes(digest), bytes(user_code), app, frozenset(scopes), _audience(audience), created, expires, family,
        interval, polled, approved, consent, used_at,
    )  # fmt: skip


def _proof(row: Row) -> tuple[Credential, Principal]:
    _, scopes, audience, expires_at, revoked_at, app, user, role, *organisation = row
    found = organisation_of(tuple(organisation))
    principal = Principal(
        tenant=Tenant(found.id, True),
        actor=Actor("app", app, user),
        via="oauth",
        role=role,
        scopes=frozenset(scopes),
        organisation=found,
        person=user is not None,
        mode_fixed=False,
        audience=audience,
    )
    return AccessToken(expires_at, revoked_at), principal
