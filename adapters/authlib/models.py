"""Apps, authorization codes, tokens and device requests with the interfaces that Authlib requires."""

import hmac
from datetime import datetime
from typing import Final

from authlib.oauth2.rfc6749 import ClientMixin, TokenMixin
from authlib.oauth2.rfc8628 import DeviceCredentialMixin

from domain.oauth import redirects
from domain.oauth.model import App, AuthorizationCode, DeviceRequest, TokenWithFamily, format_scopes, parse_scopes
from domain.oauth.ports import TokenHasher

SECRET_AUTH_METHODS = ("client_secret_basic", "client_secret_post")
"""Methods of client authentication with a secret."""


class OAuthClient(ClientMixin):  # type: ignore[misc]  # Authlib has no types
    """App as a client in Authlib.

    Args:
        app: The app.
        hash_token: Hashes a received secret for comparison with the stored hash.
    """

    def __init__(self, app: App, hash_token: TokenHasher) -> None:
        self.app, self._digest = app, hash_token

    def get_client_id(self) -> str:
        return self.app.client_id

    def get_default_redirect_uri(self) -> str | None:
        """Return the redirect URI of a request that names none: the app's only URI if it is an https URL."""
        uris = self.app.redirect_uris
        return uris[0] if len(uris) == 1 and redirects.is_received_by_app_only(uris[0]) else None

    def get_allowed_scope(self, scope: str | None) -> str | None:
        """Return the requested scopes, or the app's default scopes if none are requested; None if the app may not request a scope."""
        requested = parse_scopes(scope or "")
        if not requested:
            return format_scopes(self.app.default_scopes)
        return format_scopes(requested) if requested <= self.app.scopes else None

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirects.is_registered(self.app.redirect_uris, redirect_uri, self.app.kind)

    def check_client_secret(self, client_secret: str) -> bool:
        stored = self.app.digest
        return stored is not None and hmac.compare_digest(stored, self._digest(client_secret))

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Return whether the app may use the method: one with a secret if the app has a secret, else `none`."""
        return method in SECRET_AUTH_METHODS if self.app.digest is not None else method == "none"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code" and "authorization_code" in self.app.kind.grants

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.app.kind.grants


class IssuedCode:
    """Authorization code with its PKCE challenge, in the interface that Authlib requires."""

    code_challenge_method: Final = "S256"

    def __init__(self, code: AuthorizationCode) -> None:
        self.code = code
        self.code_challenge = code.challenge

    def get_redirect_uri(self) -> str:
        return self.code.redirect_uri

    def get_scope(self) -> str:
        return format_scopes(self.code.scopes)


class RequestToken(TokenMixin):  # type: ignore[misc]  # Authlib has no types
    """Refresh or access token of a request, as a token in Authlib."""

    def __init__(self, stored: TokenWithFamily, now: datetime) -> None:
        self.stored, self._now = stored, now

    def check_client(self, client: OAuthClient) -> bool:
        return client.app.id == self.stored.family.app

    def get_scope(self) -> str:
        return format_scopes(self.stored.token.scopes)

    def get_expires_in(self) -> int:
        return round((self.stored.token.expires_at - self.stored.token.created_at).total_seconds())

    def is_expired(self) -> bool:
        return not self.stored.is_active(self._now)

    def is_revoked(self) -> bool:
        return not self.stored.can_be_refreshed(self._now)


class DeviceCredential(DeviceCredentialMixin):  # type: ignore[misc]  # Authlib has no types
    """Device authorization request, as a device credential in Authlib.

    Only the hash of the user code is stored, so `get_user_code` returns the hash in hexadecimal notation.
    """

    def __init__(self, device: DeviceRequest, client_id: str, now: datetime) -> None:
        self.device, self._client_id, self._now = device, client_id, now

    def get_client_id(self) -> str:
        return self._client_id

    def get_scope(self) -> str:
        return format_scopes(self.device.scopes)

    def get_user_code(self) -> str:
        return self.device.user_code.hex()

    def is_expired(self) -> bool:
        return self.device.expires_at <= self._now or self.device.used_at is not None
