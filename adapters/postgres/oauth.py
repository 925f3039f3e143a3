"""OAuth in PostgreSQL: apps and grants on every node, codes and tokens on the coordinator."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.orgs import organisation_of
from adapters.postgres.stores import CoordinatorStore, SharedStore, done, every, first, run, statements
from adapters.postgres.table import Record, Spread
from domain.access.model import Credential, Principal
from domain.kernel.tenancy import Actor, Tenant
from domain.oauth.model import AccessToken, App, Code, Consent, Device, Family, Grant, HeldToken, Token
from domain.oauth.ports import AppStore, TokenStore

SQL = statements("oauth")
_CONSENT = {"consent": Spread(Consent, {"user": "user", "org": "organisation", "grant": "grant_id"})}
_APPS, _GRANTS, _TOKENS, _FAMILIES = Record(App), Record(Grant), Record(Token), Record(Family)
_CODES, _DEVICES = Record(Code, exceptions=_CONSENT), Record(Device, exceptions=_CONSENT)


def _held_token(*row: Any) -> HeldToken:
    return HeldToken(_TOKENS.row_of(*row), Family(*row[10:19]), row[19])


class PostgresAppStore(SharedStore, AppStore):
    """Apps and grants of the organisation."""

    _sql = SQL
    add = run("add_app", values=_APPS.values)
    get = first(_APPS.row_of, "own_app")
    all = every(_APPS.row_of, "own_apps")
    save = run("save_app", values=_APPS.values)
    remove = done("remove_app")
    grants = every(_GRANTS.row_of)
    grant = first(_GRANTS.row_of)
    put_grant = run(values=_GRANTS.values)


class PostgresTokenStore(CoordinatorStore, TokenStore):
    """Codes, tokens and device requests, and the verification of access tokens."""

    _sql = SQL
    app = first(_APPS.row_of)
    app_of = first(_APPS.row_of)
    add_code = run(values=_CODES.values)
    code = first(_CODES.row_of)
    token = first(_held_token)
    end = done("end_family")
    end_token = run()
    add_device = done(values=_DEVICES.values)
    device = first(_DEVICES.row_of)
    device_of_user_code = first(_DEVICES.row_of)
    save_poll = run(values=_DEVICES.values)
    decide = done(values=_DEVICES.values)

    async def keep_app(self, app: App) -> App:
        return await self._first(_APPS.row_of, "keep_client", **_APPS.values(app)) or app

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
        self, family: Family, tokens: Collection[Token], consume: str | None = None, /, **values: Any
    ) -> bool:
        """Issue a family of tokens; if `consume` names a statement, only if it consumes one row. Return whether tokens were issued."""
        async with self._transaction() as link:
            if consume and await link.run(SQL[consume], values) != 1:
                return False
            columns = {"organisation": family.org, "grant_id": family.grant}
            await link.run(SQL["add_family"], _FAMILIES.values(family) | columns)
            await _add_tokens(link, tokens)
        return True


async def _add_tokens(link: PooledConnection, tokens: Collection[Token]) -> None:
    for token in tokens:
        await link.run(SQL["add_token"], _TOKENS.values(token))


def _proof(*row: Any) -> tuple[Credential, Principal]:
    _, scopes, audience, expires_at, revoked_at, app, user, role, *organisation = row
    owner = organisation_of(*organisation)
    principal = Principal(
        tenant=Tenant(owner.id, True),
        actor=Actor("app", app, user),
        via="oauth",
        role=role,
        scopes=frozenset(scopes),
        organisation=owner,
        person=user is not None,
        mode_fixed=False,
        audience=audience,
    )
    return AccessToken(expires_at, revoked_at), principal
