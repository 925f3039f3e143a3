"""The four grant types on Authlib's classes, whose queries are answered from what was loaded before."""

from dataclasses import replace
from typing import Any, Final

from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6749.errors import InvalidGrantError, InvalidRequestError, InvalidScopeError
from authlib.oauth2.rfc8628 import DeviceCodeGrant

from adapters.authlib.models import AuthorizationCode, Client, DeviceCredential, OwnToken
from domain.access.usecases import secret_with
from domain.oauth.model import CODE_PREFIX

METHODS = ["client_secret_basic", "client_secret_post", "none"]


class CodeGrant(grants.AuthorizationCodeGrant):  # type: ignore[misc]  # Authlib has no types
    """Authorization code grant, with PKCE by an extension."""

    TOKEN_ENDPOINT_AUTH_METHODS: Final = METHODS

    def generate_authorization_code(self) -> str:
        return secret_with(CODE_PREFIX)

    def save_authorization_code(self, code: str, request: Any) -> None:
        self.server.told["code"] = code

    def query_authorization_code(self, code: str, client: Client) -> AuthorizationCode | None:
        """Return the app's unused, unexpired code, or None."""
        stored, now = self.server.known.code, self.server.known.now
        if stored is None or stored.app != client.app.id or stored.used_at is not None or stored.expires_at <= now:
            return None
        return AuthorizationCode(stored)

    def delete_authorization_code(self, authorization_code: AuthorizationCode) -> None:
        """Do nothing: the code is marked as used in the transaction that stores the tokens."""

    def authenticate_user(self, authorization_code: AuthorizationCode) -> str:
        return authorization_code.code.consent.user

    @staticmethod
    def validate_authorization_redirect_uri(request: Any, client: Client) -> str:
        """Return the redirect URI. Raises InvalidRequestError, which does not repeat an unregistered URI."""
        requested = request.payload.redirect_uri
        if requested and not client.check_redirect_uri(requested):
            raise InvalidRequestError("This redirect_uri is not registered for the app.")
        uri = requested or client.get_default_redirect_uri()
        if not uri:
            raise InvalidRequestError("Send a redirect_uri: the app has no default.")
        return str(uri)


class RefreshGrant(grants.RefreshTokenGrant):  # type: ignore[misc]  # Authlib has no types
    """Refresh token grant with rotation."""

    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS: Final = METHODS

    def authenticate_refresh_token(self, refresh_token: str) -> OwnToken | None:
        """Return the token with the scopes that the app may still request; None if it is invalid or no scope remains."""
        held, now, app = self.server.known.token, self.server.known.now, self.server.known.app
        if held is None or held.token.kind != "refresh" or not held.may_refresh(now):
            return None
        scopes = held.token.scopes & app.scopes
        return OwnToken(replace(held, token=replace(held.token, scopes=scopes)), now) if scopes else None

    def authenticate_user(self, refresh_token: OwnToken) -> str | None:
        return refresh_token.held.family.user

    def revoke_old_credential(self, refresh_token: OwnToken) -> None:
        """Do nothing: the token is marked as used in the transaction that stores its successor."""


class MachineGrant(grants.ClientCredentialsGrant):  # type: ignore[misc]  # Authlib has no types
    """Client credentials grant, for machine apps."""

    TOKEN_ENDPOINT_AUTH_METHODS: Final = METHODS[:2]

    def validate_token_request(self) -> None:
        super().validate_token_request()
        if self.client.get_allowed_scope(self.request.payload.scope) is None:
            raise InvalidScopeError


class DeviceGrant(DeviceCodeGrant):  # type: ignore[misc]  # Authlib has no types
    """Device authorization grant (RFC 8628)."""

    TOKEN_ENDPOINT_AUTH_METHODS: Final = METHODS

    def query_device_credential(self, device_code: str) -> DeviceCredential:
        """Return the device's request. Raises InvalidGrantError if the code is unknown or belongs to another app."""
        known = self.server.known
        if known.device is None or known.app is None or known.device.app != known.app.id:
            raise InvalidGrantError("This device_code is unknown.")
        return DeviceCredential(known.device, known.app.client_id, known.now)

    def query_user_grant(self, user_code: str) -> tuple[str, bool] | None:
        device = self.server.known.device
        if device.approved is None:
            return None
        return device.consent.user if device.consent else "", device.approved

    def should_slow_down(self, credential: DeviceCredential) -> bool:
        return credential.device.too_soon(self.server.known.now)
