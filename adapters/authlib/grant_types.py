"""The four supported OAuth grant types, based on Authlib's classes."""

from dataclasses import replace
from typing import Any, Final

from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6749.errors import InvalidGrantError, InvalidRequestError, InvalidScopeError
from authlib.oauth2.rfc8628 import DeviceCodeGrant

from adapters.authlib.models import DeviceCredential, IssuedCode, OAuthClient, RequestToken
from domain.access.usecases import generate_secret
from domain.oauth.model import CODE_PREFIX

SUPPORTED_CLIENT_AUTH = ["client_secret_basic", "client_secret_post", "none"]
"""Supported methods of client authentication."""


class AuthorizationCodeGrantType(grants.AuthorizationCodeGrant):  # type: ignore[misc]  # Authlib has no types
    """Authorization code grant; S256CodeChallenge checks PKCE."""

    TOKEN_ENDPOINT_AUTH_METHODS: Final = SUPPORTED_CLIENT_AUTH

    def generate_authorization_code(self) -> str:
        return generate_secret(CODE_PREFIX)

    def save_authorization_code(self, code: str, request: Any) -> None:
        self.server.results["code"] = code

    def query_authorization_code(self, code: str, client: OAuthClient) -> IssuedCode | None:
        """Return the authorization code if the app received it, and it is unused and unexpired, else None."""
        stored, now = self.server.rows.code, self.server.rows.now
        if stored is None or stored.app != client.app.id or stored.used_at is not None or stored.expires_at <= now:
            return None
        return IssuedCode(stored)

    def delete_authorization_code(self, authorization_code: IssuedCode) -> None:
        """Do nothing: the code is marked as used in the transaction that stores the tokens."""

    def authenticate_user(self, authorization_code: IssuedCode) -> str:
        return authorization_code.code.consent.user

    @staticmethod
    def validate_authorization_redirect_uri(request: Any, client: OAuthClient) -> str:
        """Return the redirect URI of the request, or the app's default one. Raises InvalidRequestError if it is not registered."""
        requested = request.payload.redirect_uri
        if requested and not client.check_redirect_uri(requested):
            raise InvalidRequestError(
                "This redirect_uri is not registered for the app. Send a registered redirect_uri."
            )
        uri = requested or client.get_default_redirect_uri()
        if not uri:
            raise InvalidRequestError("Send a redirect_uri: the app has no default.")
        return str(uri)


class RefreshTokenGrantType(grants.RefreshTokenGrant):  # type: ignore[misc]  # Authlib has no types
    """Refresh token grant; each use returns a new refresh token."""

    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS: Final = SUPPORTED_CLIENT_AUTH

    def authenticate_refresh_token(self, refresh_token: str) -> RequestToken | None:
        """Return the refresh token with the scopes that the app may still request; None if it is invalid or no scope remains."""
        stored, now, app = self.server.rows.token, self.server.rows.now, self.server.rows.app
        if stored is None or stored.token.kind != "refresh" or not stored.can_be_refreshed(now):
            return None
        scopes = stored.token.scopes & app.scopes
        return RequestToken(replace(stored, token=replace(stored.token, scopes=scopes)), now) if scopes else None

    def authenticate_user(self, refresh_token: RequestToken) -> str | None:
        return refresh_token.stored.family.user

    def revoke_old_credential(self, refresh_token: RequestToken) -> None:
        """Do nothing: the token is marked as used in the transaction that stores the new token."""


class ClientCredentialsGrantType(grants.ClientCredentialsGrant):  # type: ignore[misc]  # Authlib has no types
    """Client credentials grant, for apps that act without a user."""

    TOKEN_ENDPOINT_AUTH_METHODS: Final = SUPPORTED_CLIENT_AUTH[:2]

    def validate_token_request(self) -> None:
        super().validate_token_request()
        if self.client.get_allowed_scope(self.request.payload.scope) is None:
            raise InvalidScopeError


class DeviceCodeGrantType(DeviceCodeGrant):  # type: ignore[misc]  # Authlib has no types
    """Device authorization grant (RFC 8628)."""

    TOKEN_ENDPOINT_AUTH_METHODS: Final = SUPPORTED_CLIENT_AUTH

    def query_device_credential(self, device_code: str) -> DeviceCredential:
        """Return the device authorization request. Raises InvalidGrantError if the code is unknown or belongs to another app."""
        known = self.server.rows
        if known.device is None or known.app is None or known.device.app != known.app.id:
            raise InvalidGrantError(
                "This device_code is unknown or belongs to another app. Start the device authorization again."
            )
        return DeviceCredential(known.device, known.app.client_id, known.now)

    def query_user_grant(self, user_code: str) -> tuple[str, bool] | None:
        device = self.server.rows.device
        if device.approved is None:
            return None
        return device.consent.user if device.consent else "", device.approved

    def should_slow_down(self, credential: DeviceCredential) -> bool:
        return credential.device.is_polling_too_fast(self.server.rows.now)
