"""The four ways to a token, on Authlib's grants: what each asks the store for is already there."""

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
    """The authorization code, with PKCE by an extension."""

    TOKEN_ENDPOINT_AUTH_METHODS: Final = METHODS

    def generate_authorization_code(self) -> str:
        return secret_with(CODE_PREFIX)

    def save_authorization_code(self, code: str, request: Any) -> None:
        self.server.told["code"] = code

    def query_authorization_code(self, code: str, client: Client) -> AuthorizationCode | None:
        """The code, if it was made for this app, and is neither used nor over."""
        found, now = self.server.known.code, self.server.known.now
        if found is None or found.app != client.app.id or found.used_at is not None or found.expires_at <= now:
            return None
        return AuthorizationCode(found)

    def delete_authorization_code(self, authorization_code: AuthorizationCode) -> None:
        """It is used up with what it gives, in one transaction."""

    def authenticate_user(self, authorization_code: AuthorizationCode) -> str:
        return authorization_code.code.consent.user

    @staticmethod
    def validate_authorization_redirect_uri(request: Any, client: Client) -> str:
        """The address, if it is one of the app's. The refusal never repeats it: it may be anything."""
        asked = request.payload.redirect_uri
        if asked and not client.check_redirect_uri(asked):
            raise InvalidRequestError("This redirect_uri is not registered for the app.")
        found = asked or client.get_default_redirect_uri()
        if not found:
            raise InvalidRequestError("Say the redirect_uri: the app has none, or more than one.")
        return str(found)


class RefreshGrant(grants.RefreshTokenGrant):  # type: ignore[misc]  # Authlib has no types
    """A refresh token, which is another one after each use."""

    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS: Final = METHODS

    def authenticate_refresh_token(self, refresh_token: str) -> OwnToken | None:
        """The token, with those of its scopes that the app may ask for yet; None when it, or none of them, is good any more."""
        held, now, app = self.server.known.token, self.server.known.now, self.server.known.app
        if held is None or held.token.kind != "refresh" or not held.may_refresh(now):
            return None
        left = held.token.scopes & app.scopes
        return OwnToken(replace(held, token=replace(held.token, scopes=left)), now) if left else None

    def authenticate_user(self, refresh_token: OwnToken) -> str | None:
        return refresh_token.held.family.user

    def revoke_old_credential(self, refresh_token: OwnToken) -> None:
        """It is used up with what comes of it, in one transaction."""


class MachineGrant(grants.ClientCredentialsGrant):  # type: ignore[misc]  # Authlib has no types
    """A machine app's own secret."""

    TOKEN_ENDPOINT_AUTH_METHODS: Final = METHODS[:2]

    def validate_token_request(self) -> None:
        super().validate_token_request()
        if self.client.get_allowed_scope(self.request.payload.scope) is None:
            raise InvalidScopeError


class DeviceGrant(DeviceCodeGrant):  # type: ignore[misc]  # Authlib has no types
    """A device that waits for a person's word."""

    TOKEN_ENDPOINT_AUTH_METHODS: Final = METHODS

    def query_device_credential(self, device_code: str) -> DeviceCredential:
        """The request. Raises InvalidGrantError for an unknown one, and for another app's."""
        known = self.server.known
        if known.device is None or known.app is None or known.device.app != known.app.id:
            raise InvalidGrantError("This device_code is not known.")
        return DeviceCredential(known.device, known.app.client_id, known.now)

    def query_user_grant(self, user_code: str) -> tuple[str, bool] | None:
        device = self.server.known.device
        if device.approved is None:
            return None
        return device.consent.user if device.consent else "", device.approved

    def should_slow_down(self, credential: DeviceCredential) -> bool:
        return credential.device.too_soon(self.server.known.now)
