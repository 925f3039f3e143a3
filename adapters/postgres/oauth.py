"""OAuth in PostgreSQL: apps and grants on every node, changed in their organisation's transactions; sign-ins with the coordinator."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.orgs import organisation_of
from adapters.postgres.stores import CoordinatorStore, TenantStore, statements
from adapters.postgres.table import Record, Spread
from domain.access.model import Credential, Principal
from domain.kernel.tenancy import Actor, Tenant
from domain.oauth.model import AccessToken, App, Code, Consent, Device, Family, Grant, HeldToken, Token

SQL = statements("oauth")
_CONSENT = {"consent": Spread(Consent, {"user": "user", "org": "organisation", "grant": "grant_id"})}
_APPS, _GRANTS, _TOKENS, _FAMILIES = Record(App), Record(Grant), Record(Token), Record(Family)
_CODES, _DEVICES = Record(Code, exceptions=_CONSENT), Record(Device, exceptions=_CONSENT)


class PostgresAppStore(TenantStore):
    """AppStore."""

    _sql = SQL

    async def add(self, app: App) -> None:
        await self._write("add_app", **_APPS.values(app))

    async def get(self, id: str) -> App | None:
        return await self._first(_APPS.row_of, "own_app", id=id)

    async def all(self) -> Sequence[App]:
        return await self._every(_APPS.row_of, "own_apps")

    async def save(self, app: App) -> None:
        await self._write("save_app", **_APPS.values(app))

    async def remove(self, id: str) -> bool:
        return await self._write("remove_app", id=id) == 1

    async def grants(self, user: str | None = None) -> Sequence[Grant]:
        return await self._every(_GRANTS.row_of, "grants", user=user)

    async def grant(self, app: str, user: str) -> Grant | None:
        return await self._first(_GRANTS.row_of, "grant", app=app, user=user)

    async def put_grant(self, grant: Grant) -> None:
        await self._write("put_grant", **_GRANTS.values(grant))


class PostgresTokenStore(CoordinatorStore):
    """TokenStore, and the proofs of its access tokens."""

    _sql = SQL

    async def app(self, client_id: str) -> App | None:
        return await self._first(_APPS.row_of, "app", client_id=client_id)

    async def app_of(self, id: str) -> App | None:
        return await self._first(_APPS.row_of, "app_of", id=id)

    async def keep_app(self, app: App) -> App:
        return await self._first(_APPS.row_of, "keep_client", **_APPS.values(app)) or app

    async def add_code(self, code: Code) -> None:
        await self._run("add_code", **_CODES.values(code))

    async def code(self, digest: bytes) -> Code | None:
        return await self._first(_CODES.row_of, "code", digest=digest)

    async def token(self, digest: bytes) -> HeldToken | None:
        return await self._first(_held, "token", digest=digest)

    async def redeem(self, code: Code, family: Family, tokens: Collection[Token]) -> bool:
        return await self._issue(family, tokens, "use_code", digest=code.digest, now=family.created_at)

    async def rotate(self, held: HeldToken, tokens: Collection[Token], now: datetime) -> bool:
        values = {"digest": held.token.digest, "used_at": held.token.used_at, "family": held.family.id, "now": now}
        async with self._transaction() as link:
            await link.run(SQL["lock_family"], values)
            if await link.run(SQL["use_token"], values) != 1:
                return False
            await link.run(SQL["replace_heirs"], values)
            await _add_tokens(link, tokens)
        return True

    async def issue(self, family: Family, tokens: Collection[Token]) -> None:
        await self._issue(family, tokens)

    async def end(self, family: str, why: str, now: datetime) -> bool:
        return await self._run("end_family", id=family, why=why, now=now) == 1

    async def end_token(self, digest: bytes, now: datetime) -> None:
        await self._run("end_token", digest=digest, now=now)

    async def add_device(self, device: Device) -> bool:
        return await self._run("add_device", **_DEVICES.values(device)) == 1

    async def device(self, digest: bytes) -> Device | None:
        return await self._first(_DEVICES.row_of, "device", digest=digest)

    async def device_of_user_code(self, digest: bytes, now: datetime) -> Device | None:
        return await self._first(_DEVICES.row_of, "device_of_user_code", user_code=digest, now=now)

    async def save_poll(self, device: Device) -> None:
        await self._run("save_poll", **_DEVICES.values(device))

    async def decide(self, device: Device) -> bool:
        return await self._run("decide", **_DEVICES.values(device)) == 1

    async def take(self, device: Device, family: Family, tokens: Collection[Token], now: datetime) -> bool:
        return await self._issue(family, tokens, "use_device", digest=device.digest, now=now)

    async def used(self, app: App, now: datetime) -> None:
        await self._run("used_client", client_id=app.client_id, now=now)

    async def purge(self, now: datetime, unused_since: datetime) -> int:
        kinds = ("families", "tokens", "codes", "devices", "clients")
        return sum([await self._run(f"purge_{kind}", now=now, unused_since=unused_since) for kind in kinds])

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        return {row[0]: _proof(*row) for row in await self._rows("proofs", digests=list(digests))}

    async def _issue(
        self, family: Family, tokens: Collection[Token], used_up: str | None = None, /, **values: Any
    ) -> bool:
        """Issue tokens in exchange for what the statement `used_up` uses up, if anything; return whether that was there."""
        async with self._transaction() as link:
            if used_up and await link.run(SQL[used_up], values) != 1:
                return False
            of_family = {"organisation": family.org, "grant_id": family.grant}
            await link.run(SQL["add_family"], _FAMILIES.values(family) | of_family)
            await _add_tokens(link, tokens)
        return True


async def _add_tokens(link: PooledConnection, tokens: Collection[Token]) -> None:
    for token in tokens:
        await link.run(SQL["add_token"], _TOKENS.values(token))


def _held(*row: Any) -> HeldToken:
    return HeldToken(_TOKENS.row_of(*row), Family(*row[10:19]), row[19])


def _proof(*row: Any) -> tuple[Credential, Principal]:
    _, scopes, audience, expires_at, revoked_at, app, user, role, *organisation = row
    found = organisation_of(*organisation)
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
