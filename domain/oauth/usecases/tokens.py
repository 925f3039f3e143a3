"""Issuing, revocation and introspection of tokens.

All rows that a request names are read first, then the rules judge plain values, then the result is stored in one
transaction that succeeds only if nothing has changed since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from domain.kernel.ids import new_id
from domain.oauth.asking import Call, Granted, Known
from domain.oauth.errors import OAuthError
from domain.oauth.model import (
    ABSOLUTE,
    ACCESS_SECONDS,
    AUTHORIZATION_CODE,
    CLIENT_CREDENTIALS,
    DEVICE_CODE,
    IDLE,
    UNUSED,
    App,
    Consent,
    Family,
    HeldToken,
    Token,
    TokenKind,
)
from domain.oauth.ports import GrantRules, TokenDigest, TokenStore
from domain.oauth.usecases.clients import Clients, spend
from ports.clock import Clock
from ports.limits import Limits

REVOKED = "revoked"
REUSE = "reuse"
REQUESTS = (100, 20.0)
"""Burst and rate per second of one address."""


@dataclass(frozen=True, slots=True)
class TokenService:
    """The token, revocation and introspection endpoints. `digest` hashes tokens for storage."""

    store: TokenStore
    clients: Clients
    rules: GrantRules
    limits: Limits
    clock: Clock
    digest: TokenDigest

    async def token(self, call: Call, address: str) -> Mapping[str, Any]:
        """Return the response to a token request (RFC 6749 §5.1). Raises OAuthError."""
        await spend(self.limits, f"token:{address}", *REQUESTS)
        for _ in range(2):
            known = await self._known(call, address)
            if known.device is not None and known.app is not None and known.device.app == known.app.id:
                await self.store.save_poll(known.device.polled(known.now))
            try:
                granted = self.rules.token(call, known)
            except OAuthError:
                await self._end_if_reused(known)
                raise
            if await self._store(granted, known):
                if not granted.app.verified:
                    await self.store.used(granted.app, known.now)
                return granted.answer
        await self._end_if_reused(await self._known(call, address))
        raise OAuthError("invalid_grant", "The code or token was already used.")

    async def revoke(self, call: Call, address: str) -> None:
        """Revoke the presented token; a refresh token ends its whole sign-in (RFC 7009). Raises OAuthError."""
        await spend(self.limits, f"token:{address}", *REQUESTS)
        known = await self._known(call, address)
        self.rules.presented(call, known, "revocation")
        held = known.token
        if held is None or known.app is None or held.family.app != known.app.id:
            return
        if held.token.kind is TokenKind.REFRESH:
            await self.store.end(held.family.id, REVOKED, known.now)
        else:
            await self.store.end_token(held.token.digest, known.now)

    async def introspect(self, call: Call, address: str) -> Mapping[str, Any]:
        """Return the state of the presented token to the app that owns it (RFC 7662). Raises OAuthError."""
        await spend(self.limits, f"token:{address}", *REQUESTS)
        return self.rules.presented(call, await self._known(call, address), "introspection")

    async def _known(self, call: Call, address: str) -> Known:
        app = await self.clients.find(self.rules.claimed(call), address)
        code, refresh, device = (
            call.get("code"),
            call.get("refresh_token") or call.get("token"),
            call.get("device_code"),
        )
        return Known(
            now=self.clock.now(),
            app=app,
            code=await self.store.code(self.digest(code)) if code else None,
            token=await self.store.token(self.digest(refresh)) if refresh else None,
            device=await self.store.device(self.digest(device)) if device else None,
        )

    async def _end_if_reused(self, known: Known) -> None:
        """End the family of a code or refresh token that is presented after its use (RFC 9700 §4.14)."""
        app, code, held = known.app, known.code, known.token
        if app is None:
            return
        if code is not None and code.used_at is not None and code.app == app.id:
            await self.store.end(code.family, REUSE, known.now)
        if held is not None and held.token.kind is TokenKind.REFRESH and held.is_reuse(known.now):
            await self.store.end(held.family.id, REUSE, known.now)

    async def _store(self, granted: Granted, known: Known) -> bool:
        """Store the granted tokens; return False if the code or token has changed since it was read."""
        now, app = known.now, granted.app
        if granted.by == CLIENT_CREDENTIALS:
            family = Family(new_id("fam"), app.id, app.org or "", None, None, now, now + _seconds(ACCESS_SECONDS))
            await self.store.issue(family, self._tokens(granted, family, now, None))
            return True
        if granted.by == AUTHORIZATION_CODE and known.code is not None:
            family = _family(known.code.family, app, known.code.consent, now, ABSOLUTE)
            return await self.store.redeem(known.code, family, self._tokens(granted, family, now, None))
        if granted.by == DEVICE_CODE and known.device is not None and known.device.consent is not None:
            family = _family(known.device.family, app, known.device.consent, now, 2 * ABSOLUTE)
            tokens = self._tokens(granted, family, now, None)
            return await self.store.take(known.device, family, tokens, now)
        if known.token is None:
            raise OAuthError("unsupported_grant_type")
        tokens = self._tokens(granted, known.token.family, now, known.token)
        return await self.store.rotate(known.token, tokens, now)

    def _tokens(self, granted: Granted, family: Family, now: datetime, parent: HeldToken | None) -> Sequence[Token]:
        """Return the access token and the refresh token, which keeps all granted scopes even if fewer were requested."""
        digest = parent.token.digest if parent else None
        ends = now + _seconds(ACCESS_SECONDS)
        access = Token(
            self.digest(granted.access),
            family.id,
            TokenKind.ACCESS,
            granted.scopes,
            granted.audience,
            now,
            ends,
            digest,
        )
        if granted.refresh is None:
            return (access,)
        scopes = parent.token.scopes if parent else granted.scopes
        audience = parent.token.audience if parent else granted.audience
        idle = min(now + IDLE, family.expires_at)
        kept = Token(self.digest(granted.refresh), family.id, TokenKind.REFRESH, scopes, audience, now, idle, digest)
        return access, kept


def _family(id: str, app: App, consent: Consent, now: datetime, lasting: timedelta) -> Family:
    return Family(id, app.id, consent.org, consent.user, consent.grant, now, now + lasting)


def _seconds(count: int) -> timedelta:
    return timedelta(seconds=count)


async def purge(store: TokenStore, clock: Clock) -> int:
    """Delete expired codes, tokens, sign-ins, devices and unused registered apps; return the number of rows."""
    now = clock.now()
    return await store.purge(now, now - UNUSED)
