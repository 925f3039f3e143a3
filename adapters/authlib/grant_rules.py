"""Validation of OAuth requests and issue of grants by Authlib, with a separate server object for each request."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from authlib.oauth2.rfc6749.errors import OAuth2Error
from authlib.oauth2.rfc6749.util import extract_basic_authorization

from adapters.authlib import metadata
from adapters.authlib.requests import FormRequest
from adapters.authlib.server import AuthlibServer, ServerResponse, generate_user_code
from domain.oauth.errors import CHALLENGE, OAuthError
from domain.oauth.model import DEVICE_CODE, REFRESH_TOKEN, App, Audience, parse_scopes
from domain.oauth.ports import Redirect, TokenHasher
from domain.oauth.requests import (
    AuthorizationRequest,
    ClientMetadata,
    DeviceAuthorization,
    OAuthRequest,
    ReferencedRows,
    TokenGrant,
)

T = TypeVar("T")
_ECHOED_PARAMETERS = ("response_type", "grant_type", "client_id", "token_type_hint")
"""Parameters whose values Authlib copies into error descriptions, which permit only some characters (RFC 6749 §5.2)."""


class AuthlibGrantRules:
    """Validation of OAuth requests and issue of grants (port OAuthProtocol in domain/oauth/ports.py).

    Args:
        issuer: The issuer URL, without a trailing slash.
        hash_token: Hashes secrets for comparison with the stored hashes.
    """

    def __init__(self, issuer: str, hash_token: TokenHasher) -> None:
        self._issuer, self._digest = issuer, hash_token
        self._audiences: dict[str, Audience | None] = {issuer: None} | {
            f"{issuer}/{audience}": audience for audience in Audience
        }

    def get_client_id(self, oauth_request: OAuthRequest) -> str | None:
        """Return the client ID in the Authorization header or in the parameters. Raises OAuthError if they differ."""
        parameter = oauth_request.get("client_id")
        if not oauth_request.authorization:
            return parameter
        basic, _ = extract_basic_authorization({"Authorization": oauth_request.authorization})
        if basic is None:
            raise OAuthError(
                "invalid_client",
                "The Authorization header is not valid HTTP Basic authentication. Correct the header, or send client_id in the body.",
                headers=CHALLENGE,
            )
        if parameter is not None and parameter != basic:
            raise OAuthError(
                "invalid_request",
                "client_id differs from the client ID in the Authorization header. Omit client_id or the header.",
            )
        if oauth_request.get("client_secret"):
            raise OAuthError(
                "invalid_request", "Send the secret once: in the Authorization header or as client_secret."
            )
        return str(basic)

    def validate_authorization(self, oauth_request: OAuthRequest, rows: ReferencedRows) -> AuthorizationRequest:
        server, request = self._create_server(oauth_request, rows)
        try:
            grant = server.get_consent_grant(request)
        except OAuth2Error as error:
            raise self._convert_error(server, error) from None
        app = _require_app(rows.app)
        try:
            audience = self._parse_audience(oauth_request)
        except OAuthError as error:
            error.location = self._build_error_location(server, grant.redirect_uri, error, oauth_request.get("state"))
            raise
        return AuthorizationRequest(
            app=app,
            redirect_uri=grant.redirect_uri,
            scopes=parse_scopes(request.scope),
            audience=audience,
            challenge=request.payload.data["code_challenge"],
            state=oauth_request.get("state"),
            prompt=parse_scopes(oauth_request.get("prompt") or ""),
        )

    def approve(self, oauth_request: OAuthRequest, rows: ReferencedRows, user: str) -> Redirect:
        self.validate_authorization(oauth_request, rows)
        server, request = self._create_server(oauth_request, rows)
        answer: ServerResponse = server.create_authorization_response(
            request, user, server.get_authorization_grant(request)
        )
        if answer.location is None or "code" not in server.results:
            raise self._convert_error(server, server.error or OAuth2Error())
        return Redirect(answer.location, server.results["code"])

    def deny(self, oauth_request: OAuthRequest, rows: ReferencedRows, error_code: str = "access_denied") -> Redirect:
        wish = self.validate_authorization(oauth_request, rows)
        error = OAuthError(error_code, "The user did not give consent.")
        server, _ = self._create_server(oauth_request, rows)
        return Redirect(self._build_error_location(server, wish.redirect_uri, error, wish.state), None)

    def grant_tokens(self, oauth_request: OAuthRequest, rows: ReferencedRows) -> TokenGrant:
        server, request = self._create_server(oauth_request, rows)
        answer = self._respond(server, lambda: server.create_token_response(request))
        audience = self._narrow_audience(oauth_request, self._find_granted_audience(oauth_request, rows))
        token = server.results["token"]
        return TokenGrant(
            grant_type=oauth_request.get("grant_type") or "",
            app=_require_app(rows.app),
            response_fields=answer.body,
            access_token=token["access_token"],
            refresh_token=token.get("refresh_token"),
            scopes=parse_scopes(token.get("scope", "")),
            audience=audience,
        )

    def authorise_device(self, oauth_request: OAuthRequest, rows: ReferencedRows) -> DeviceAuthorization:
        audience = self._parse_audience(oauth_request)
        server, request = self._create_server(oauth_request, rows)
        server._endpoints["device_authorization"][0].generate_user_code = generate_user_code  # noqa: SLF001  Authlib generates again if the code is taken, which is not known here
        answer = self._respond(server, lambda: server.create_endpoint_response("device_authorization", request))
        app, codes = _require_app(rows.app), server.results["device"]
        scopes = parse_scopes(oauth_request.get("scope") or "") or app.default_scopes
        return DeviceAuthorization(app, answer.body, codes["device_code"], codes["user_code"], scopes, audience)

    def answer_revocation_or_introspection(
        self, oauth_request: OAuthRequest, rows: ReferencedRows, endpoint: str
    ) -> Mapping[str, Any]:
        server, request = self._create_server(oauth_request, rows)
        body: Mapping[str, Any] = self._respond(server, lambda: server.create_endpoint_response(endpoint, request)).body
        return body

    def validate_metadata(self, metadata_: Mapping[str, Any]) -> ClientMetadata:
        return metadata.parse_client_metadata(metadata_, is_public=False)

    def validate_document(self, url: str, document: Mapping[str, Any]) -> ClientMetadata:
        if document.get("client_id") != url:
            raise OAuthError(
                "invalid_client",
                "The document at client_id contains another client_id. Set client_id in the document to the document's URL.",
            )
        if "client_secret" in document:
            raise OAuthError(
                "invalid_client",
                "A public metadata document must not contain client_secret. Remove client_secret from the document.",
            )
        return metadata.parse_client_metadata(document, is_public=True)

    def describe_server(self) -> Mapping[str, Any]:
        return metadata.build_server_metadata(self._issuer)

    def _create_server(self, call: OAuthRequest, referenced_rows: ReferencedRows) -> tuple[AuthlibServer, FormRequest]:
        """Return Authlib's server and request objects for an OAuth request and the stored rows that it names.

        Raises OAuthError for a repeated parameter, or for characters that are not permitted.
        """
        if repeated := call.repeated_parameter:
            name = repeated if repeated.isascii() and repeated.isidentifier() else "A parameter"
            raise OAuthError("invalid_request", f"{name} is sent more than once. Send each parameter only once.")
        for name in _ECHOED_PARAMETERS:
            value = call.get(name) or ""
            if not (value.isascii() and value.isprintable()) or '"' in value or "\\" in value:
                raise OAuthError(
                    "invalid_request",
                    f"{name} contains characters that are not allowed. Send printable ASCII characters without double quotes and backslashes.",
                )
        return AuthlibServer(referenced_rows, self._issuer, self._digest), FormRequest(call)

    def _respond(self, server: AuthlibServer, handle: Callable[[], ServerResponse]) -> ServerResponse:
        """Return the response of `handle`. Raises OAuthError if the server has recorded an error."""
        response = handle()
        if server.error is not None:
            raise self._convert_error(server, server.error)
        return response

    def _convert_error(self, server: AuthlibServer, error: OAuth2Error) -> OAuthError:
        """Convert an error of Authlib to an OAuthError, with the URL to which the user is redirected, if any."""
        refusal = OAuthError(error.error or "invalid_request", error.get_error_description() or "")
        if error.error == "invalid_client":
            refusal.headers = CHALLENGE
        if error.redirect_uri:
            refusal.location = self._build_error_location(server, error.redirect_uri, refusal, error.state)
        return refusal

    def _build_error_location(
        self, server: AuthlibServer, redirect_uri: str, error: OAuthError, state: str | None
    ) -> str:
        """Return the redirect URI with the parameters of the error."""
        response = OAuth2Error(error.description, redirect_uri=redirect_uri, state=state, error=error.code)
        answer = ServerResponse(*response())
        server.issuer_extension.add_issuer_parameter(server, answer)
        return str(answer.location)

    def _parse_audience(self, call: OAuthRequest) -> Audience | None:
        """Return the only audience (API or MCP endpoint) that the `resource` parameters name (RFC 8707).

        Returns None if the parameters do not restrict the token to one audience. Raises OAuthError if an audience is unknown.
        """
        resources = set(call.get_all("resource"))
        if resources - self._audiences.keys():
            raise OAuthError("invalid_target", f"resource must be {self._issuer}/v1 or {self._issuer}/mcp.")
        audiences = {self._audiences[resource] for resource in resources}
        return audiences.pop() if len(audiences) == 1 else None

    def _find_granted_audience(self, call: OAuthRequest, referenced_rows: ReferencedRows) -> Audience | None:
        """Return the audience to which the code, device or refresh token in the request is restricted; None for no restriction."""
        grant = call.get("grant_type")
        if grant == REFRESH_TOKEN:
            return referenced_rows.token.token.audience if referenced_rows.token else None
        if grant == DEVICE_CODE:
            return referenced_rows.device.audience if referenced_rows.device else None
        return referenced_rows.code.audience if referenced_rows.code else None

    def _narrow_audience(self, call: OAuthRequest, granted: Audience | None) -> Audience | None:
        """Return the requested audience, or the granted audience if the request names none.

        Raises OAuthError if the requested audience is not the one that was granted.

        Args:
            call: The token request.
            granted: The audience to which the grant is restricted; None for no restriction.
        """
        if not call.get_all("resource"):
            return granted
        requested = self._parse_audience(call)
        if granted is not None and requested != granted:
            raise OAuthError(
                "invalid_target",
                "resource differs from the granted resource. Send the granted resource, or omit the parameter.",
            )
        return requested


def _require_app(app: App | None) -> App:
    """Return the app. Raises OAuthError for None."""
    if app is None:
        raise OAuthError("invalid_client", "The app is unknown. Check client_id.")
    return app
