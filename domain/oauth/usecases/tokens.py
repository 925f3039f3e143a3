"""Issuing, revocation and introspection of tokens.

For each request, the rows that it refers to are read first. Then OAuthProtocol validates the request without access to
the store. Then the result is stored in one transaction, which fails if the rows have changed meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from domain.kernel.ids import new_id
from domain.oauth.errors import OAuthError
from domain.oauth.model import (
    ACCESS_TOKEN_SECONDS,
    AUTHORIZATION_CODE,
    CLIENT_CREDENTIALS,
    DEVICE_CODE,
    MAX_FAMILY_LIFETIME,
    REFRESH_TOKEN_LIFETIME,
    UNUSED_APP_LIFETIME,
    App,
    ConsentReference,
    Token,
    TokenFamily,
    TokenKind,
    TokenWithFamily,
)
from domain.oauth.ports import OAuthProtocol, TokenHasher, TokenStore
from domain.oauth.requests import OAuthRequest, ReferencedRows, TokenGrant
from domain.oauth.usecases.clients import ClientRegistry, check_rate_limit
from ports.clock import Clock
from ports.limits import RateLimits

REVOKED = "revoked"
REUSE = "reuse"
REQUEST_RATE = (100, 20.0)
"""Limit of token requests from one network: the maximum number at once, and the number per second."""


@dataclass(frozen=True, slots=True)
class TokenService:
    """Use cases of the token, revocation and introspection endpoints. `hash_token` computes the keyed hash of a token.

    `client_network` is the caller's network, whose requests are limited together: an IPv4 address, or an IPv6 /64.
    """

    store: TokenStore
    clients: ClientRegistry
    rules: OAuthProtocol
    limits: RateLimits
    clock: Clock
    hash_token: TokenHasher

    async def issue_tokens(self, oauth_request: OAuthRequest, client_network: str) -> Mapping[str, Any]:
        """Issue tokens for a token request; return the response (RFC 6749 §5.1).

        Raises OAuthError.
        """
        await check_rate_limit(self.limits, f"token:{client_network}", *REQUEST_RATE)
        for _ in range(2):
            rows = await self._load_stored_rows(oauth_request, client_network)
            if rows.device is not None and rows.app is not None and rows.device.app == rows.app.id:
                await self.store.save_poll(rows.device.with_poll(rows.now))
            try:
                granted = self.rules.grant_tokens(oauth_request, rows)
            except OAuthError:
                await self._revoke_if_reused(rows)
                raise
            if await self._store_tokens(granted, rows):
                if not granted.app.is_verified:
                    await self.store.record_sign_in(granted.app, rows.now)
                return granted.response_fields
        await self._revoke_if_reused(await self._load_stored_rows(oauth_request, client_network))
        raise OAuthError("invalid_grant", "The code or token was already used. Start the authorization again.")

    async def revoke(self, oauth_request: OAuthRequest, client_network: str) -> None:
        """Revoke the access token in the request, or the whole token family of the refresh token (RFC 7009).

        Raises OAuthError.
        """
        await check_rate_limit(self.limits, f"token:{client_network}", *REQUEST_RATE)
        rows = await self._load_stored_rows(oauth_request, client_network)
        self.rules.answer_revocation_or_introspection(oauth_request, rows, "revocation")
        held = rows.token
        if held is None or rows.app is None or held.family.app != rows.app.id:
            return
        if held.token.kind is TokenKind.REFRESH:
            await self.store.revoke_family(held.family.id, REVOKED, rows.now)
        else:
            await self.store.revoke_token(held.token.digest, rows.now)

    async def introspect(self, oauth_request: OAuthRequest, client_network: str) -> Mapping[str, Any]:
        """Return the state of the token in the request, if the calling app owns the token (RFC 7662).

        Raises OAuthError.
        """
        await check_rate_limit(self.limits, f"token:{client_network}", *REQUEST_RATE)
        return self.rules.answer_revocation_or_introspection(
            oauth_request, await self._load_stored_rows(oauth_request, client_network), "introspection"
        )

    async def _load_stored_rows(self, oauth_request: OAuthRequest, client_network: str) -> ReferencedRows:
        app = await self.clients.find_app(self.rules.get_client_id(oauth_request), client_network)
        code, refresh, device = (
            oauth_request.get("code"),
            oauth_request.get("refresh_token") or oauth_request.get("token"),
            oauth_request.get("device_code"),
        )
        return ReferencedRows(
            now=self.clock.now(),
            app=app,
            code=await self.store.find_code(self.hash_token(code)) if code else None,
            token=await self.store.find_token(self.hash_token(refresh)) if refresh else None,
            device=await self.store.find_device(self.hash_token(device)) if device else None,
        )

    async def _revoke_if_reused(self, rows: ReferencedRows) -> None:
        """Revoke the token family of a code or refresh token that was used before (RFC 9700 §4.14)."""
        app, code, held = rows.app, rows.code, rows.token
        if app is None:
            return
        if code is not None and code.used_at is not None and code.app == app.id:
            await self.store.revoke_family(code.family, REUSE, rows.now)
        if held is not None and held.token.kind is TokenKind.REFRESH and held.is_reuse(rows.now):
            await self.store.revoke_family(held.family.id, REUSE, rows.now)

    async def _store_tokens(self, granted: TokenGrant, rows: ReferencedRows) -> bool:
        """Store the granted tokens; return False if the code or refresh token has changed since it was read."""
        now, app = rows.now, granted.app
        if granted.grant_type == CLIENT_CREDENTIALS:
            family = TokenFamily(
                new_id("fam"), app.id, app.org or "", None, None, now, now + _to_timedelta(ACCESS_TOKEN_SECONDS)
            )
            await self.store.add_family(family, self._create_tokens(granted, family, now, None))
            return True
        if granted.grant_type == AUTHORIZATION_CODE and rows.code is not None:
            family = _create_family(rows.code.family, app, rows.code.consent, now, MAX_FAMILY_LIFETIME)
            return await self.store.redeem_code(rows.code, family, self._create_tokens(granted, family, now, None))
        if granted.grant_type == DEVICE_CODE and rows.device is not None and rows.device.consent is not None:
            family = _create_family(rows.device.family, app, rows.device.consent, now, 2 * MAX_FAMILY_LIFETIME)
            tokens = self._create_tokens(granted, family, now, None)
            return await self.store.redeem_device(rows.device, family, tokens, now)
        if rows.token is None:
            raise OAuthError("unsupported_grant_type")
        tokens = self._create_tokens(granted, rows.token.family, now, rows.token)
        return await self.store.redeem_refresh_token(rows.token, tokens, now)

    def _create_tokens(
        self, granted: TokenGrant, family: TokenFamily, now: datetime, parent: TokenWithFamily | None
    ) -> Sequence[Token]:
        """Return the new access token and, if one is granted, the new refresh token.

        `parent` is the refresh token in the request. The new refresh token has all its scopes; the access token may
        have fewer.
        """
        digest = parent.token.digest if parent else None
        ends = now + _to_timedelta(ACCESS_TOKEN_SECONDS)
        access = Token(
            self.hash_token(granted.access_token),
            family.id,
            TokenKind.ACCESS,
            granted.scopes,
            granted.audience,
            now,
            ends,
            digest,
        )
        if granted.refresh_token is None:
            return (access,)
        scopes = parent.token.scopes if parent else granted.scopes
        audience = parent.token.audience if parent else granted.audience
        idle = min(now + REFRESH_TOKEN_LIFETIME, family.expires_at)
        refresh = Token(
            self.hash_token(granted.refresh_token), family.id, TokenKind.REFRESH, scopes, audience, now, idle, digest
        )
        return access, refresh


def _create_family(id: str, app: App, consent: ConsentReference, now: datetime, lifetime: timedelta) -> TokenFamily:
    return TokenFamily(id, app.id, consent.org, consent.user, consent.grant, now, now + lifetime)


def _to_timedelta(seconds: int) -> timedelta:
    return timedelta(seconds=seconds)


async def delete_expired(store: TokenStore, clock: Clock) -> int:
    """Delete expired codes, tokens and device requests, and unused dynamically registered apps; return the number of rows."""
    now = clock.now()
    return await store.delete_expired(now, now - UNUSED_APP_LIFETIME)
