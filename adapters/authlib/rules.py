"""ports.oauth.GrantRules by Authlib: a server is made for each request, over what is known of it."""

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
"""Parameters that Authlib repeats in sentences, where not every letter may stand (RFC 6749 §5.2)."""


class AuthlibRules:
    """`issuer` is this server's address, without a slash at its end; `digest` hashes secrets as they are stored."""

    def __init__(self, issuer: str, digest: TokenDigest) -> None:
        self._issuer, self._digest = issuer, digest
        self._audiences: dict[str, Audience | None] = {issuer: None} | {f"{issuer}/{one}": one for one in Audience}

    def claimed(self, call: Call) -> str | None:
        """Of the header, or of the parameters; who names two different ones is refused."""
        named = call.get("client_id")
        if not call.authorization:
            return named
        basic, _ = extract_basic_authorization({"Authorization": call.authorization})
        if basic is None:
            raise OAuthError("invalid_client", "The Authorization header is not Basic.", headers=CHALLENGE)
        if named is not None and named != basic:
            raise OAuthError("invalid_request", "client_id is another one than in the Authorization header.")
        if call.get("client_secret"):
            raise OAuthError(
                "invalid_request", "Show the secret once: in the Authorization header, or as client_secret."
            )
        return str(basic)

    def wish(self, call: Call, known: Known) -> Wish:
        server, request = self._begun(call, known)
        try:
            grant = server.get_consent_grant(request)
        except OAuth2Error as error:
            raise self._refusal(server, error) from None
        app = _must(known.app)
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
        server, request = self._begun(call, known)
        answer: Answer = server.create_authorization_response(request, user, server.get_authorization_grant(request))
        if answer.location is None or "code" not in server.told:
            raise self._refusal(server, server.refused or OAuth2Error())
        return Redirect(answer.location, server.told["code"])

    def denied(self, call: Call, known: Known, code: str = "access_denied") -> Redirect:
        wish = self.wish(call, known)
        error = OAuthError(code, "The person did not agree.")
        server, _ = self._begun(call, known)
        return Redirect(self._error_location(server, wish.redirect_uri, error, wish.state), None)

    def token(self, call: Call, known: Known) -> Granted:
        server, request = self._begun(call, known)
        answer = self._answered(server, lambda: server.create_token_response(request))
        bound = self._bound(call, known)
        audience = self._narrowed(call, bound)
        token = server.told["token"]
        return Granted(
            by=call.get("grant_type") or "",
            app=_must(known.app),
            answer=answer.body,
            access=token["access_token"],
            refresh=token.get("refresh_token"),
            scopes=scopes_of(token.get("scope", "")),
            audience=audience,
        )

    def device(self, call: Call, known: Known) -> DeviceStart:
        audience = self._audience(call)
        server, request = self._begun(call, known)
        server._endpoints["device_authorization"][0].generate_user_code = user_code  # noqa: SLF001  Authlib's own draws repeat what its generator gives
        answer = self._answered(server, lambda: server.create_endpoint_response("device_authorization", request))
        app, told = _must(known.app), server.told["device"]
        asked = scopes_of(call.get("scope") or "") or app.asked_by_default
        return DeviceStart(app, answer.body, told["device_code"], told["user_code"], asked, audience)

    def presented(self, call: Call, known: Known, endpoint: str) -> Mapping[str, Any]:
        server, request = self._begun(call, known)
        body: Mapping[str, Any] = self._answered(
            server, lambda: server.create_endpoint_response(endpoint, request)
        ).body
        return body

    def registered(self, metadata_: Mapping[str, Any]) -> Metadata:
        return metadata.read(metadata_, public=False)

    def described(self, url: str, document: Mapping[str, Any]) -> Metadata:
        if document.get("client_id") != url:
            raise OAuthError("invalid_client", "The document at client_id is about another client_id.")
        if "client_secret" in document:
            raise OAuthError("invalid_client", "A document that anybody can read must not hold a secret.")
        return metadata.read(document, public=True)

    def server(self) -> Mapping[str, Any]:
        return metadata.server_metadata(self._issuer)

    def _begun(self, call: Call, known: Known) -> tuple[Server, FormRequest]:
        if repeated := call.repeated:
            name = repeated if repeated.isascii() and repeated.isidentifier() else "A parameter"
            raise OAuthError("invalid_request", f"{name} is sent more than once.")
        for name in _NAMED:
            value = call.get(name) or ""
            if not (value.isascii() and value.isprintable()) or '"' in value or "\\" in value:
                raise OAuthError("invalid_request", f"{name} has letters that it cannot have.")
        return Server(known, self._issuer, self._digest), FormRequest(call)

    def _answered(self, server: Server, work: Callable[[], Answer]) -> Answer:
        answer = work()
        if server.refused is not None:
            raise self._refusal(server, server.refused)
        return answer

    def _refusal(self, server: Server, error: OAuth2Error) -> OAuthError:
        """Authlib's refusal as ours, with where it leads."""
        told = OAuthError(error.error or "invalid_request", error.get_error_description() or "")
        if error.error == "invalid_client":
            told.headers = CHALLENGE
        if error.redirect_uri:
            told.location = self._error_location(server, error.redirect_uri, told, error.state)
        return told

    def _error_location(self, server: Server, redirect_uri: str, error: OAuthError, state: str | None) -> str:
        told = OAuth2Error(error.description, redirect_uri=redirect_uri, state=state, error=error.code)
        answer = Answer(*told())
        server.added.add_issuer_parameter(server, answer)
        return str(answer.location)

    def _audience(self, call: Call) -> Audience | None:
        """Of the resources that are named (RFC 8707); None for none, or for all."""
        named = set(call.all("resource"))
        if named - self._audiences.keys():
            raise OAuthError("invalid_target", f"resource is {self._issuer}/v1 or {self._issuer}/mcp.")
        found = {self._audiences[one] for one in named}
        return found.pop() if len(found) == 1 else None

    def _bound(self, call: Call, known: Known) -> Audience | None:
        grant = call.get("grant_type")
        if grant == REFRESH_TOKEN:
            return known.token.token.audience if known.token else None
        if grant == DEVICE_CODE:
            return known.device.audience if known.device else None
        return known.code.audience if known.code else None

    def _narrowed(self, call: Call, bound: Audience | None) -> Audience | None:
        """What a token request makes of what was agreed to: the same, or less."""
        if not call.all("resource"):
            return bound
        asked = self._audience(call)
        if bound is not None and asked != bound:
            raise OAuthError("invalid_target", "resource is another one than was agreed to.")
        return asked


def _must(app: App | None) -> App:
    if app is None:
        raise OAuthError("invalid_client", "The app is not known.")
    return app
