"""OAuth endpoints for device authorization, revocation and introspection, based on Authlib's classes."""

from typing import Any, Final

from authlib.oauth2.rfc6749.errors import InvalidScopeError, UnauthorizedClientError
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint

from adapters.authlib.grant_types import SUPPORTED_CLIENT_AUTH
from adapters.authlib.models import OAuthClient, RequestToken
from domain.access.usecases import generate_secret
from domain.oauth.model import DEVICE_CODE, DEVICE_CODE_SECONDS, DEVICE_PREFIX, MIN_POLL_SECONDS


class DeviceFlowEndpoint(DeviceAuthorizationEndpoint):  # type: ignore[misc]  # Authlib has no types
    """Device authorization endpoint (RFC 8628)."""

    EXPIRES_IN = DEVICE_CODE_SECONDS
    INTERVAL = MIN_POLL_SECONDS
    CLIENT_AUTH_METHODS: Final = SUPPORTED_CLIENT_AUTH

    def authenticate_client(self, request: Any) -> OAuthClient:
        """Authenticate the app and check that it may use the device grant and the requested scopes."""
        client: OAuthClient = self.server.authenticate_client(request, self.CLIENT_AUTH_METHODS, "device_authorization")
        request.client = client
        if not client.check_grant_type(DEVICE_CODE):
            raise UnauthorizedClientError("Only a native app can use the device authorization grant.")
        if client.get_allowed_scope(request.payload.scope) is None:
            raise InvalidScopeError
        return client

    def generate_device_code(self) -> str:
        return generate_secret(DEVICE_PREFIX)

    def get_verification_uri(self) -> str:
        return f"{self.server.issuer}/oauth/device"

    def save_device_credential(self, client_id: str, scope: str | None, data: dict[str, Any]) -> None:
        self.server.results["device"] = data


class Revocation(RevocationEndpoint):  # type: ignore[misc]  # Authlib has no types
    """Revocation endpoint (RFC 7009); unknown tokens and tokens of other apps are ignored."""

    CLIENT_AUTH_METHODS: Final = SUPPORTED_CLIENT_AUTH

    def query_token(self, token_string: str, token_type_hint: str | None) -> RequestToken | None:
        return find_request_token(self)

    def revoke_token(self, token: RequestToken, request: Any) -> None:
        self.server.results["revoked"] = token


class Introspection(IntrospectionEndpoint):  # type: ignore[misc]  # Authlib has no types
    """Introspection endpoint (RFC 7662) for an app's own tokens."""

    CLIENT_AUTH_METHODS: Final = SUPPORTED_CLIENT_AUTH

    def check_permission(self, token: RequestToken, client: OAuthClient, request: Any) -> bool:
        return token.check_client(client)

    def query_token(self, token_string: str, token_type_hint: str | None) -> RequestToken | None:
        return find_request_token(self)

    def create_introspection_payload(self, token: RequestToken | None) -> dict[str, Any]:
        """Return the response for a token (None: unknown or of another app). A refresh token that was already used is inactive."""
        if token is not None and token.stored.token.used_at is not None:
            return {"active": False}
        payload: dict[str, Any] = super().create_introspection_payload(token)
        return payload

    def introspect_token(self, token: RequestToken) -> dict[str, Any]:
        stored, app = token.stored, self.server.rows.app
        audiences = [stored.token.audience] if stored.token.audience else ["v1", "mcp"]
        response = {
            "active": True,
            "client_id": app.client_id,
            "scope": token.get_scope(),
            "token_type": "Bearer" if stored.token.kind == "access" else "refresh_token",
            "exp": int(min(stored.token.expires_at, stored.family.expires_at).timestamp()),
            "iat": int(stored.token.created_at.timestamp()),
            "sub": stored.family.user or app.id,
            "aud": [f"{self.server.issuer}/{audience}" for audience in audiences],
            "iss": self.server.issuer,
        }
        return response | {"organisation": stored.family.org}


def find_request_token(endpoint: Any) -> RequestToken | None:
    """Return the token in the endpoint's request if it belongs to the authenticated app, else None."""
    known = endpoint.server.rows
    if known.token is None or known.app is None or known.token.family.app != known.app.id:
        return None
    return RequestToken(known.token, known.now)
