"""OAuth authorization server by Authlib for one request.

The server reads rows that were loaded before, and leaves values to store in `results`.
"""

import logging
import secrets
from typing import Any, Final

from authlib.oauth2.rfc6749 import AuthorizationServer
from authlib.oauth2.rfc6749.errors import InvalidRequestError, OAuth2Error
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9207 import IssuerParameter

from adapters.authlib.endpoints import DeviceFlowEndpoint, Introspection, Revocation
from adapters.authlib.grant_types import (
    AuthorizationCodeGrantType,
    ClientCredentialsGrantType,
    DeviceCodeGrantType,
    RefreshTokenGrantType,
)
from adapters.authlib.models import OAuthClient
from adapters.authlib.requests import FormRequest
from domain.access.model import SCOPES
from domain.access.usecases import generate_secret
from domain.oauth.model import ACCESS_PREFIX, ACCESS_TOKEN_SECONDS, REFRESH_PREFIX
from domain.oauth.ports import TokenHasher
from domain.oauth.requests import ReferencedRows

logging.getLogger("authlib").setLevel(logging.WARNING)
"""At level DEBUG, Authlib would log tokens."""


class ServerResponse:
    """Response of the authorization server.

    Attributes:
        status: The HTTP status.
        body: The JSON body.
        headers: The headers, except Content-Type and Location.
        location: The target of a redirect, or None.
    """

    def __init__(self, status: int, body: Any, headers: list[tuple[str, str]]) -> None:
        self.status, self.body = status, body
        self.headers = tuple(
            (name, value) for name, value in headers if name.lower() not in ("content-type", "location")
        )
        self.location = next((value for name, value in headers if name.lower() == "location"), None)


class S256CodeChallenge(CodeChallenge):  # type: ignore[misc]  # Authlib has no types
    """PKCE check that accepts only the method S256, and requires PKCE of every app."""

    DEFAULT_CODE_CHALLENGE_METHOD = "S256"
    SUPPORTED_CODE_CHALLENGE_METHOD: Final = ["S256"]

    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        """Raise InvalidRequestError unless the request has a challenge with the method S256."""
        # a missing method means `plain` (RFC 7636 §4.3)
        parameters = grant.request.payload.data
        if not parameters.get("code_challenge") or parameters.get("code_challenge_method") != "S256":
            raise InvalidRequestError("PKCE is required. Send code_challenge and code_challenge_method=S256.")
        super().validate_code_challenge(grant, redirect_uri)


class IssuerExtension(IssuerParameter):  # type: ignore[misc]  # Authlib has no types
    """Extension that adds the issuer as `iss` to every authorization response, including errors (RFC 9207)."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def get_issuer(self) -> str:
        return self._issuer


class AuthlibServer(AuthorizationServer):  # type: ignore[misc]  # Authlib has no types
    """Authorization server for one request.

    Attributes:
        rows: The rows to which the request refers.
        issuer: The issuer URL.
        hash_token: Hashes secrets for comparison with the stored hashes.
        results: Values for the caller by name: authorization code (`code`), issued tokens (`token`), codes of a device
            (`device`) and token to revoke (`revoked`).
        error: The error for the caller to raise, or None.
    """

    def __init__(self, rows: ReferencedRows, issuer: str, hash_token: TokenHasher) -> None:
        super().__init__(scopes_supported=sorted(SCOPES))
        self.rows, self.issuer, self.hash_token = rows, issuer, hash_token
        self.results: dict[str, Any] = {}
        self.error: OAuth2Error | None = None
        self.register_grant(AuthorizationCodeGrantType, [S256CodeChallenge(required=True)])
        for grant in (RefreshTokenGrantType, ClientCredentialsGrantType, DeviceCodeGrantType):
            self.register_grant(grant)
        for endpoint in (DeviceFlowEndpoint, Introspection, Revocation):
            self.register_endpoint(endpoint)
        self.register_token_generator("default", _create_token_generator())
        self.issuer_extension = IssuerExtension(issuer)
        self.register_extension(self.issuer_extension)

    def query_client(self, client_id: str) -> OAuthClient | None:
        """Return the app of the request if it has the client ID, else None."""
        app = self.rows.app
        return OAuthClient(app, self.hash_token) if app is not None and app.client_id == client_id else None

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        self.results["token"] = token

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Do nothing, because there are no signal handlers."""

    def create_oauth2_request(self, request: Any) -> FormRequest:
        return request if isinstance(request, FormRequest) else FormRequest(request)

    def create_json_request(self, request: Any) -> Any:
        return request

    def handle_response(self, status: int, body: Any, headers: list[tuple[str, str]]) -> ServerResponse:
        return ServerResponse(status, body, headers)

    def handle_error_response(self, request: Any, error: OAuth2Error) -> ServerResponse:
        """Store the error in the attribute `error` for the caller to raise; return the response."""
        self.error = error
        answer: ServerResponse = super().handle_error_response(request, error)
        return answer


def _create_token_generator() -> BearerTokenGenerator:
    return BearerTokenGenerator(
        lambda **_: generate_secret(ACCESS_PREFIX),
        lambda **_: generate_secret(REFRESH_PREFIX),
        lambda *_: ACCESS_TOKEN_SECONDS,
    )


def generate_user_code() -> str:
    """Generate a user code for a device: eight consonants with a hyphen, which are easy to read and form no words (RFC 8628 §6.1)."""
    letters = "".join(secrets.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"
