"""GrantRules (domain/oauth/ports.py) by Authlib, with one server object per request."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from authlib.oauth2.rfc6749.errors import OAuth2Error
from authlib.oauth2.rfc6749.util import extract_basic_authorization

from adapters.authlib import metadata
from adapters.authlib.requests import FormRequest
from adapters.authlib.server import Answer, Server, user_code
from domain.oauth.asking import Call, DeviceStart, Granted, Known, Metadata, Wish
from domain.oauth.errors import CHALLENGE, OAuthError
from domain.oauth.model import DEVICE_CODE, REFRESH_TOKEN, App, Audience, scopes_of
from domain.oauth.ports import Redirect, TokenDigest

T = TypeVar("T")
_NAMED = ("response_type", "grant_type", "client_id", "token_type_hint")
"""Parameters that Authlib repeats in error descriptions, whose characters are restricted (RFC 6749 §5.2)."""


class AuthlibRules:
    """GrantRules for the issuer URL (without a trailing slash); `digest` hashes secrets as they are stored."""

    def __init__(self, issuer: str, digest: TokenDigest) -> None:
        self._issuer, self._digest = issuer, digest
        self._audiences: dict[str, Audience | None] = {issuer: None} | {
            f"{issuer}/{audience}": audience for audience in Audience
        }

    def claimed(self, call: Call) -> str | None:
        """Return the client ID of the header or the parameters. Raises OAuthError if they differ."""
        parameter = call.get("client_id")
        if not call.authorization:
            return parameter
        basic, _ = extract_basic_authorization({"Authorization": call.authorization})
        if basic is None:
            raise OAuthError("invalid_client", "The Authorization header is not Basic.", headers=CHALLENGE)
        if parameter is not None and parameter != basic:
            raise OAuthError("invalid_request", "client_id differs from the one in the Authorization header.")
        if call.get("client_secret"):
            raise OAuthError(
                "invalid_request", "Send the secret once: in the Authorization header or as client_secret."
            )
        return str(basic)

    def wish(self, call: Call, known: Known) -> Wish:
        server, request = self._begin(call, known)
        try:
            grant = server.get_consent_grant(request)
        except OAuth2Error as error:
            raise self._refusal(server, error) from None
        app = _require(known.app)
        try:
            audience = self._audience(call)
        except OAuthError as error:
            error.location = self._error_location(server, grant.redirect_uri, error, call.get("state"))
            raise
        return Wish(
            app=app,
            redirect_uri=grant.redirect_uri,
            scopes=scopes_of(request.scope),
            audience=audience,
            challenge=request.payload.data["code_challenge"],
            state=call.get("state"),
            prompt=scopes_of(call.get("prompt") or ""),
        )

    def agreed(self, call: Call, known: Known, user: str) -> Redirect:
        self.wish(call, known)
        server, request = self._begin(call, known)
        answer: Answer = server.create_authorization_response(request, user, server.get_authorization_grant(request))
        if answer.location is None or "code" not in server.told:
            raise self._refusal(server, server.refused or OAuth2Error())
        return Redirect(answer.location, server.told["code"])

    def denied(self, call: Call, known: Known, code: str = "access_denied") -> Redirect:
        wish = self.wish(call, known)
        error = OAuthError(code, "The user did not give consent.")
        server, _ = self._begin(call, known)
        return Redirect(self._error_location(server, wish.redirect_uri, error, wish.state), None)

    def token(self, call: Call, known: Known) -> Granted:
        server, request = self._begin(call, known)
        answer = self._respond(server, lambda: server.create_token_response(request))
        audience = self._narrow_audience(call, self._granted_audience(call, known))
        token = server.told["token"]
        return Granted(
            by=call.get("grant_type") or "",
            app=_require(known.app),
            answer=answer.body,
            access=token["access_token"],
            refresh=token.get("refresh_token"),
            scopes=scopes_of(token.get("scope", "")),
            audience=audience,
        )

    def device(self, call: Call, known: Known) -> DeviceStart:
        audience = self._audience(call)
        server, request = self._begin(call, known)
        server._endpoints["device_authorization"][0].generate_user_code = user_code  # noqa: SLF001  Authlib generates again if the code is taken, which is not known here
        answer = self._respond(server, lambda: server.create_endpoint_response("device_authorization", request))
        app, codes = _require(known.app), server.told["device"]
        scopes = scopes_of(call.get("scope") or "") or app.asked_by_default
        return DeviceStart(app, answer.body, codes["device_code"], codes["user_code"], scopes, audience)

    def presented(self, call: Call, known: Known, endpoint: str) -> Mapping[str, Any]:
        server, request = self._begin(call, known)
        body: Mapping[str, Any] = self._respond(server, lambda: server.create_endpoint_response(endpoint, request)).body
        return body

    def registered(self, metadata_: Mapping[str, Any]) -> Metadata:
        return metadata.read(metadata_, public=False)

    def described(self, url: str, document: Mapping[str, Any]) -> Metadata:
        if document.get("client_id") != url:
            raise OAuthError("invalid_client", "The document at client_id states another client_id.")
        if "client_secret" in document:
            raise OAuthError("invalid_client", "A public metadata document must not contain client_secret.")
        return metadata.read(document, public=True)

    def server(self) -> Mapping[str, Any]:
        return metadata.server_metadata(self._issuer)

    def _begin(self, call: Call, known: Known) -> tuple[Server, FormRequest]:
        if repeated := call.repeated:
            name = repeated if repeated.isascii() and repeated.isidentifier() else "A parameter"
            raise OAuthError("invalid_request", f"{name} is sent more than once.")
        for name in _NAMED:
            value = call.get(name) or ""
            if not (value.isascii() and value.isprintable()) or '"' in value or "\\" in value:
                raise OAuthError("invalid_request", f"{name} contains characters that are not allowed.")
        return Server(known, self._issuer, self._digest), FormRequest(call)

    def _respond(self, server: Server, work: Callable[[], Answer]) -> Answer:
        answer = work()
        if server.refused is not None:
            raise self._refusal(server, server.refused)
        return answer

    def _refusal(self, server: Server, error: OAuth2Error) -> OAuthError:
        """Convert Authlib's error to an OAuthError, with the location that it redirects to."""
        refusal = OAuthError(error.error or "invalid_request", error.get_error_description() or "")
        if error.error == "invalid_client":
            refusal.headers = CHALLENGE
        if error.redirect_uri:
            refusal.location = self._error_location(server, error.redirect_uri, refusal, error.state)
        return refusal

    def _error_location(self, server: Server, redirect_uri: str, error: OAuthError, state: str | None) -> str:
        response = OAuth2Error(error.description, redirect_uri=redirect_uri, state=state, error=error.code)
        answer = Answer(*response())
        server.added.add_issuer_parameter(server, answer)
        return str(answer.location)

    def _audience(self, call: Call) -> Audience | None:
        """Return the audience of the requested resources (RFC 8707); None for no restriction. Raises OAuthError."""
        resources = set(call.all("resource"))
        if resources - self._audiences.keys():
            raise OAuthError("invalid_target", f"resource must be {self._issuer}/v1 or {self._issuer}/mcp.")
        audiences = {self._audiences[resource] for resource in resources}
        return audiences.pop() if len(audiences) == 1 else None

    def _granted_audience(self, call: Call, known: Known) -> Audience | None:
        grant = call.get("grant_type")
        if grant == REFRESH_TOKEN:
            return known.token.token.audience if known.token else None
        if grant == DEVICE_CODE:
            return known.device.audience if known.device else None
        return known.code.audience if known.code else None

    def _narrow_audience(self, call: Call, granted: Audience | None) -> Audience | None:
        """Restrict the granted audience to the requested one. Raises OAuthError if that would extend it."""
        if not call.all("resource"):
            return granted
        requested = self._audience(call)
        if granted is not None and requested != granted:
            raise OAuthError("invalid_target", "resource differs from the one that was granted.")
        return requested


def _require(app: App | None) -> App:
    if app is None:
        raise OAuthError("invalid_client", "The app is unknown.")
    return app
