"""Endpoints for device authorization, revocation and introspection."""

from typing import Any, Final

from authlib.oauth2.rfc6749.errors import InvalidScopeError, UnauthorizedClientError
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint

from adapters.authlib.grants import METHODS
from adapters.authlib.models import Client, OwnToken
from domain.access.usecases import secret_with
from domain.oauth.model import DEVICE_CODE, DEVICE_PREFIX, DEVICE_SECONDS, POLL_SECONDS


class DeviceEndpoint(DeviceAuthorizationEndpoint):  # type: ignore[misc]  # Authlib has no types
    """Device authorization endpoint (RFC 8628)."""

    EXPIRES_IN = DEVICE_SECONDS
    INTERVAL = POLL_SECONDS
    CLIENT_AUTH_METHODS: Final = METHODS

    def authenticate_client(self, request: Any) -> Client:
        """Authenticate the app and check that it may use the device grant and the requested scopes."""
        client: Client = self.server.authenticate_client(request, self.CLIENT_AUTH_METHODS, "device_authorization")
        request.client = client
        if not client.check_grant_type(DEVICE_CODE):
            raise UnauthorizedClientError("Only a native app can use the device authorization grant.")
        if client.get_allowed_scope(request.payload.scope) is None:
            raise InvalidScopeError
        return client

    def generate_device_code(self) -> str:
        return secret_with(DEVICE_PREFIX)

    def get_verification_uri(self) -> str:
        return f"{self.server.issuer}/oauth/device"

    def save_device_credential(self, client_id: str, scope: str | None, data: dict[str, Any]) -> None:
        self.server.told["device"] = data


class Revocation(RevocationEndpoint):  # type: ignore[misc]  # Authlib has no types
    """Revocation endpoint (RFC 7009); unknown tokens and those of other apps are ignored."""

    CLIENT_AUTH_METHODS: Final = METHODS

    def query_token(self, token_string: str, token_type_hint: str | None) -> OwnToken | None:
        return own_token(self)

    def revoke_token(self, token: OwnToken, request: Any) -> None:
        self.server.told["revoked"] = token


class Introspection(IntrospectionEndpoint):  # type: ignore[misc]  # Authlib has no types
    """Introspection endpoint (RFC 7662) for an app's own tokens."""

    CLIENT_AUTH_METHODS: Final = METHODS

    def check_permission(self, token: OwnToken, client: Client, request: Any) -> bool:
        return token.check_client(client)

    def query_token(self, token_string: str, token_type_hint: str | None) -> OwnToken | None:
        return own_token(self)

    def create_introspection_payload(self, token: OwnToken | None) -> dict[str, Any]:
        """Return the response; a used refresh token is inactive."""
        if token is not None and token.held.token.used_at is not None:
            return {"active": False}
        payload: dict[str, Any] = super().create_introspection_payload(token)
        return payload

    def introspect_token(self, token: OwnToken) -> dict[str, Any]:
        held, app = token.held, self.server.known.app
        audiences = [held.token.audience] if held.token.audience else ["v1", "mcp"]
        response = {
            "active": True,
            "client_id": app.client_id,
            "scope": token.get_scope(),
            "token_type": "Bearer" if held.token.kind == "access" else "refresh_token",
            "exp": int(min(held.token.expires_at, held.family.expires_at).timestamp()),
            "iat": int(held.token.created_at.timestamp()),
            "sub": held.family.user or app.id,
            "aud": [f"{self.server.issuer}/{audience}" for audience in audiences],
            "iss": self.server.issuer,
        }
        return response | {"organisation": held.family.org}


def own_token(endpoint: Any) -> OwnToken | None:
    """Return the token of the request if it belongs to the authenticated app."""
    known = endpoint.server.known
    if known.token is None or known.app is None or known.token.family.app != known.app.id:
        return None
    return OwnToken(known.token, known.now)
