"""OAuth in PostgreSQL: apps and consents in reference tables on every node, codes and tokens on the coordinator."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.orgs import build_organisation
from adapters.postgres.stores import (
    CoordinatorStore,
    ReferenceTableStore,
    execute_count,
    execute_one,
    fetch_all,
    fetch_first,
    load_statements,
)
from adapters.postgres.table import ColumnCodec, MultiColumnCodec, RowMapping
from domain.access.model import Credential, Principal
from domain.kernel.tenancy import Actor, Tenant
from domain.oauth.model import (
    AccessToken,
    App,
    AuthorizationCode,
    ConsentReference,
    DeviceRequest,
    OAuthConsent,
    Token,
    TokenFamily,
    TokenWithFamily,
)
from domain.oauth.ports import AppStore, TokenStore

SQL = load_statements("oauth")
_CONSENT_CODECS = {
    "consent": MultiColumnCodec(ConsentReference, {"user": "user", "org": "organisation", "grant": "grant_id"})
}
_APPS, _CONSENTS, _TOKENS, _FAMILIES = (
    RowMapping(App, special_codecs={"created_by": ColumnCodec("made_by")}),
    RowMapping(OAuthConsent),
    RowMapping(Token),
    RowMapping(TokenFamily),
)
_CODES, _DEVICES = (
    RowMapping(AuthorizationCode, special_codecs=_CONSENT_CODECS),
    RowMapping(DeviceRequest, special_codecs=_CONSENT_CODECS),
)


def _build_stored_token(*row: Any) -> TokenWithFamily:
    return TokenWithFamily(_TOKENS.build_from_row(*row), TokenFamily(*row[10:19]), row[19])


class PostgresAppStore(ReferenceTableStore, AppStore):
    """Apps of the organisation, and consents of its members to apps."""

    _sql = SQL
    add = execute_count("add_app", values=_APPS.build_params)
    get = fetch_first(_APPS.build_from_row, "get_own_app")
    list_apps = fetch_all(_APPS.build_from_row)
    save = execute_count("save_app", values=_APPS.build_params)
    remove = execute_one("remove_app")
    list_consents = fetch_all(_CONSENTS.build_from_row)
    find_consent = fetch_first(_CONSENTS.build_from_row)
    save_consent = execute_count(values=_CONSENTS.build_params)


class PostgresTokenStore(CoordinatorStore, TokenStore):
    """Authorization codes, tokens and device requests, and the verification of access tokens."""

    _sql = SQL
    find_app = fetch_first(_APPS.build_from_row)
    get_app = fetch_first(_APPS.build_from_row)
    add_code = execute_count(values=_CODES.build_params)
    find_code = fetch_first(_CODES.build_from_row)
    find_token = fetch_first(_build_stored_token)
    revoke_family = execute_one()
    revoke_token = execute_count()
    add_device = execute_one(values=_DEVICES.build_params)
    find_device = fetch_first(_DEVICES.build_from_row)
    find_device_by_user_code = fetch_first(_DEVICES.build_from_row)
    save_poll = execute_count(values=_DEVICES.build_params)
    save_decision = execute_one(values=_DEVICES.build_params)

    async def save_app(self, app: App) -> App:
        return await self._fetch_first(_APPS.build_from_row, "save_client", **_APPS.build_params(app)) or app

    async def redeem_code(self, code: AuthorizationCode, family: TokenFamily, tokens: Collection[Token]) -> bool:
        return await self._issue_family(family, tokens, "use_code", digest=code.digest, now=family.created_at)

    async def redeem_refresh_token(self, stored: TokenWithFamily, tokens: Collection[Token], now: datetime) -> bool:
        values = {
            "digest": stored.token.digest,
            "used_at": stored.token.used_at,
            "family": stored.family.id,
            "now": now,
        }
        async with self._begin() as connection:
            await connection.run(SQL["lock_family"], values)
            if await connection.run(SQL["use_token"], values) != 1:
                return False
            await connection.run(SQL["end_child_tokens"], values)
            await _add_tokens(connection, tokens)
        return True

    async def add_family(self, family: TokenFamily, tokens: Collection[Token]) -> None:
        await self._issue_family(family, tokens)

    async def redeem_device(
        self, device: DeviceRequest, family: TokenFamily, tokens: Collection[Token], now: datetime
    ) -> bool:
        return await self._issue_family(family, tokens, "use_device", digest=device.digest, now=now)

    async def record_sign_in(self, app: App, now: datetime) -> None:
        await self._run("record_client_use", client_id=app.client_id, now=now)

    async def delete_expired(self, now: datetime, unused_since: datetime) -> int:
        kinds = ("families", "tokens", "codes", "devices", "clients")
        return sum([await self._run(f"purge_{kind}", now=now, unused_since=unused_since) for kind in kinds])

    async def find_tokens(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        return {
            row[0]: _build_token_and_principal(*row)
            for row in await self._fetch_rows("find_access_tokens", digests=list(digests))
        }

    async def _issue_family(
        self, family: TokenFamily, tokens: Collection[Token], consuming_statement: str | None = None, /, **values: Any
    ) -> bool:
        """Store a token family (all tokens of one sign-in); return whether the tokens were issued.

        Args:
            family: The token family.
            tokens: Tokens of the family.
            consuming_statement: Name of an SQL statement that must change exactly one row, such as marking a code as used;
                otherwise nothing is issued. None for no such statement.
            **values: Parameters of that statement.
        """
        async with self._begin() as connection:
            if consuming_statement and await connection.run(SQL[consuming_statement], values) != 1:
                return False
            columns = {"organisation": family.org, "grant_id": family.grant}
            await connection.run(SQL["add_family"], _FAMILIES.build_params(family) | columns)
            await _add_tokens(connection, tokens)
        return True


async def _add_tokens(connection: PooledConnection, tokens: Collection[Token]) -> None:
    for token in tokens:
        await connection.run(SQL["add_token"], _TOKENS.build_params(token))


def _build_token_and_principal(*row: Any) -> tuple[Credential, Principal]:
    _, scopes, audience, expires_at, revoked_at, app, user, role, *organisation = row
    owner = build_organisation(*organisation)
    principal = Principal(
        tenant=Tenant(owner.id, True),
        actor=Actor("app", app, user),
        via="oauth",
        role=role,
        scopes=frozenset(scopes),
        organisation=owner,
        is_personal_token=user is not None,
        has_fixed_mode=False,
        audience=audience,
    )
    return AccessToken(expires_at, revoked_at), principal
