"""Wrappers that give apps, codes and tokens the interfaces of Authlib."""

import hmac
from datetime import datetime
from typing import Final

from authlib.oauth2.rfc6749 import ClientMixin, TokenMixin
from authlib.oauth2.rfc8628 import DeviceCredentialMixin

from domain.oauth import redirects
from domain.oauth.model import App, Code, Device, HeldToken, scope_text, scopes_of
from domain.oauth.ports import TokenDigest

SECRETS = ("client_secret_basic", "client_secret_post")


class Client(ClientMixin):  # type: ignore[misc]  # Authlib has no types
    """App as an OAuth client; `digest` hashes a presented secret."""

    def __init__(self, app: App, digest: TokenDigest) -> None:
        self.app, self._digest = app, digest

    def get_client_id(self) -> str:
        return self.app.client_id

    def get_default_redirect_uri(self) -> str | None:
        """Return the only redirect URI; None for several, or for a loopback URI, whose port the request must state."""
        uris = self.app.redirect_uris
        return uris[0] if len(uris) == 1 and redirects.is_safe_to_skip(uris[0]) else None

    def get_allowed_scope(self, scope: str | None) -> str | None:
        """Return the requested scopes or the app's default ones; None if the app may not request one of them."""
        requested = scopes_of(scope or "")
        if not requested:
            return scope_text(self.app.asked_by_default)
        return scope_text(requested) if requested <= self.app.scopes else None

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirects.chosen(self.app.redirect_uris, redirect_uri, self.app.kind)

    def check_client_secret(self, client_secret: str) -> bool:
        stored = self.app.digest
        return stored is not None and hmac.compare_digest(stored, self._digest(client_secret))

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Return whether the method uses a secret if and only if the app has one."""
        return method in SECRETS if self.app.digest is not None else method == "none"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code" and "authorization_code" in self.app.kind.grants

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.app.kind.grants


class AuthorizationCode:
    """Authorization code with its PKCE challenge."""

    code_challenge_method: Final = "S256"

    def __init__(self, code: Code) -> None:
        self.code = code
        self.code_challenge = code.challenge

    def get_redirect_uri(self) -> str:
        return self.code.redirect_uri

    def get_scope(self) -> str:
        return scope_text(self.code.scopes)


class OwnToken(TokenMixin):  # type: ignore[misc]  # Authlib has no types
    """Refresh or access token."""

    def __init__(self, held: HeldToken, now: datetime) -> None:
        self.held, self._now = held, now

    def check_client(self, client: Client) -> bool:
        return client.app.id == self.held.family.app

    def get_scope(self) -> str:
        return scope_text(self.held.token.scopes)

    def get_expires_in(self) -> int:
        return round((self.held.token.expires_at - self.held.token.created_at).total_seconds())

    def is_expired(self) -> bool:
        return not self.held.in_force(self._now)

    def is_revoked(self) -> bool:
        return not self.held.may_refresh(self._now)


class DeviceCredential(DeviceCredentialMixin):  # type: ignore[misc]  # Authlib has no types
    """Device authorization request. Only the hash of the user code is stored, so its hexadecimal form replaces the code."""

    def __init__(self, device: Device, client_id: str, now: datetime) -> None:
        self.device, self._client_id, self._now = device, client_id, now

    def get_client_id(self) -> str:
        return self._client_id

    def get_scope(self) -> str:
        return scope_text(self.device.scopes)

    def get_user_code(self) -> str:
        return self.device.user_code.hex()

    def is_expired(self) -> bool:
        return self.device.expires_at <= self._now or self.device.used_at is not None
