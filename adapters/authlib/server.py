"""Authlib's server for one request: reads only values that were loaded before, and returns what would be stored."""

import logging
import secrets
from typing import Any, Final

from authlib.oauth2.rfc6749 import AuthorizationServer
from authlib.oauth2.rfc6749.errors import InvalidRequestError, OAuth2Error
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9207 import IssuerParameter

from adapters.authlib.endpoints import DeviceEndpoint, Introspection, Revocation
from adapters.authlib.grants import CodeGrant, DeviceGrant, MachineGrant, RefreshGrant
from adapters.authlib.models import Client
from adapters.authlib.requests import FormRequest
from domain.access.model import SCOPES
from domain.access.usecases import secret_with
from domain.oauth.asking import Known
from domain.oauth.model import ACCESS_PREFIX, ACCESS_SECONDS, REFRESH_PREFIX
from domain.oauth.ports import TokenDigest

logging.getLogger("authlib").setLevel(logging.WARNING)
"""Authlib logs tokens and owners of secrets at level debug."""


class Answer:
    """Response as plain values; `location` is the redirect's target."""

    def __init__(self, status: int, body: Any, headers: list[tuple[str, str]]) -> None:
        self.status, self.body = status, body
        self.headers = tuple(
            (name, value) for name, value in headers if name.lower() not in ("content-type", "location")
        )
        self.location = next((value for name, value in headers if name.lower() == "location"), None)


class StrictChallenge(CodeChallenge):  # type: ignore[misc]  # Authlib has no types
    """PKCE check that requires S256 of every app."""

    DEFAULT_CODE_CHALLENGE_METHOD = "S256"
    SUPPORTED_CODE_CHALLENGE_METHOD: Final = ["S256"]

    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        """Raise InvalidRequestError unless the method is S256; a missing one means `plain` (RFC 7636 §4.3)."""
        parameters = grant.request.payload.data
        if not parameters.get("code_challenge") or parameters.get("code_challenge_method") != "S256":
            raise InvalidRequestError("PKCE is required. Send code_challenge and code_challenge_method=S256.")
        super().validate_code_challenge(grant, redirect_uri)


class Issuer(IssuerParameter):  # type: ignore[misc]  # Authlib has no types
    """Extension that adds `iss` to every authorization response, errors included (RFC 9207)."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def get_issuer(self) -> str:
        return self._issuer


class Server(AuthorizationServer):  # type: ignore[misc]  # Authlib has no types
    """Authorization server for one request, at the URL `issuer`; `digest` hashes secrets."""

    def __init__(self, known: Known, issuer: str, digest: TokenDigest) -> None:
        super().__init__(scopes_supported=sorted(SCOPES))
        self.known, self.issuer, self.digest = known, issuer, digest
        self.told: dict[str, Any] = {}
        """Values for the caller to store or act on: `code`, `token`, `device`, `revoked`."""
        self.refused: OAuth2Error | None = None
        self.register_grant(CodeGrant, [StrictChallenge(required=True)])
        for grant in (RefreshGrant, MachineGrant, DeviceGrant):
            self.register_grant(grant)
        for endpoint in (DeviceEndpoint, Introspection, Revocation):
            self.register_endpoint(endpoint)
        self.register_token_generator("default", _bearer())
        self.added = Issuer(issuer)
        self.register_extension(self.added)

    def query_client(self, client_id: str) -> Client | None:
        """Return the loaded app if it has this client ID."""
        app = self.known.app
        return Client(app, self.digest) if app is not None and app.client_id == client_id else None

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        self.told["token"] = token

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Do nothing: there are no signal handlers."""

    def create_oauth2_request(self, request: Any) -> FormRequest:
        return request if isinstance(request, FormRequest) else FormRequest(request)

    def create_json_request(self, request: Any) -> Any:
        return request

    def handle_response(self, status: int, body: Any, headers: list[tuple[str, str]]) -> Answer:
        return Answer(status, body, headers)

    def handle_error_response(self, request: Any, error: OAuth2Error) -> Answer:
        """Record the error in `refused`, so that the caller can raise it."""
        self.refused = error
        answer: Answer = super().handle_error_response(request, error)
        return answer


def _bearer() -> BearerTokenGenerator:
    return BearerTokenGenerator(
        lambda **_: secret_with(ACCESS_PREFIX), lambda **_: secret_with(REFRESH_PREFIX), lambda *_: ACCESS_SECONDS
    )


def user_code() -> str:
    """Generate eight consonants with a hyphen, which form no words and are not confused (RFC 8628 §6.1)."""
    letters = "".join(secrets.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"
