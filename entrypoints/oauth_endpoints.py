"""OAuth endpoints for programs: token, revocation, introspection, registration, device authorisation, and metadata.

Responses and errors have the format of the OAuth RFCs instead of the API's, and must not be cached.
"""

import base64
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

from domain.kernel.errors import DomainError, InvalidRequest, PayloadTooLarge, Unavailable
from domain.oauth.errors import CHALLENGE, OAuthError
from domain.oauth.ports import OAuthProtocol
from domain.oauth.requests import OAuthRequest
from domain.oauth.usecases.apps import AppService
from domain.oauth.usecases.authorization import AuthorizationService
from domain.oauth.usecases.clients import ClientRegistry
from domain.oauth.usecases.oauth_consents import OAuthConsentService
from domain.oauth.usecases.tokens import TokenService
from domain.people.usecases.attempt_limits import find_counted_network
from entrypoints.http import body as json_body
from entrypoints.http.addresses import TrustedProxies
from entrypoints.http.exchange import HeaderList, Request, Response

MAX_BODY_BYTES = 64 * 1024
LOG = logging.getLogger("joinery.oauth")
FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"
_MAX_FIELDS = 100
_COMMON_HEADERS: Final[HeaderList] = [
    (b"cache-control", b"no-store"),
    (b"pragma", b"no-cache"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_CORS_HEADERS: Final[HeaderList] = [(b"access-control-allow-origin", b"*")]
"""Permits requests from browser apps of any origin, which is safe because cookies are not used."""
_PREFLIGHT_HEADERS: Final[HeaderList] = [
    *_CORS_HEADERS,
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type, mcp-protocol-version"),
    (b"access-control-max-age", b"7200"),
]
EndpointHandler = Callable[[Request, str], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class OAuthServices:
    """Services of the OAuth endpoints and of the console's pages for apps and consents.

    Attributes:
        protocol: Checks of the OAuth protocol, and the server's metadata.
        clients: Registration and lookup of OAuth clients.
        tokens: Issue, revocation and introspection of tokens.
        authorization: Authorisation requests of apps, including those of devices.
        apps: Management of an organisation's apps.
        consents: Consents that people granted to apps.
    """

    protocol: OAuthProtocol
    clients: ClientRegistry
    tokens: TokenService
    authorization: AuthorizationService
    apps: AppService
    consents: OAuthConsentService


class OAuthEndpoints:
    """Request handlers of the OAuth endpoints by path.

    Args:
        services: The services that the handlers call.
        proxies: Proxies whose X-Forwarded-For header is trusted to contain a client's IP address.
    """

    def __init__(self, services: OAuthServices, proxies: TrustedProxies) -> None:
        self._services, self._proxies = services, proxies
        self._metadata = msgspec.json.encode(services.protocol.describe_server())
        self.handler_by_path: Mapping[str, EndpointHandler] = {
            "/oauth/token": self._issue_token,
            "/oauth/device": self._authorise_device,
            "/oauth/revoke": self._revoke_token,
            "/oauth/introspect": self._introspect_token,
            "/oauth/register": self._register_client,
        }

    async def respond(self, request: Request) -> Response:
        """Return the response to a request for an OAuth endpoint. Errors result in error responses."""
        if request.method == "OPTIONS":
            return self.respond_to_preflight()
        if request.method != "POST":
            error = OAuthError(
                "invalid_request", "This endpoint supports POST only.", status=405, headers=(("Allow", "POST"),)
            )
            return build_error_response(error)
        client_network = find_counted_network(self._proxies.find_client(request.client_address, request.headers))
        try:
            return await self.handler_by_path[request.path](request, client_network)
        except OAuthError as error:
            return build_error_response(error)
        except Unavailable as error:
            return build_error_response(
                OAuthError(
                    "temporarily_unavailable",
                    "The service is temporarily unavailable. Try again later.",
                    retry_after=error.retry_after or 5,
                )
            )
        except DomainError as error:
            if isinstance(error, PayloadTooLarge):
                detail, status = f"The body is too large. Send at most {MAX_BODY_BYTES} bytes.", 413
            else:
                detail, status = "The request is invalid or its body is incomplete. Correct the request.", 400
            return build_error_response(OAuthError("invalid_request", detail, status=status))
        except Exception:
            LOG.exception("OAuth endpoint failed")
            return build_error_response(OAuthError("server_error", "An unexpected error occurred."))

    @staticmethod
    def respond_to_preflight() -> Response:
        """Return the response to a CORS preflight request."""
        return Response(204, [*_PREFLIGHT_HEADERS, *_COMMON_HEADERS])

    def respond_with_metadata(self) -> Response:
        """Return the response with the metadata of the authorisation server (RFC 8414)."""
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"public, max-age=300"), *_CORS_HEADERS]
        return Response(200, headers, self._metadata)

    async def _issue_token(self, request: Request, client_network: str) -> Response:
        return build_json_response(
            await self._services.tokens.issue_tokens(await parse_oauth_request(request), client_network)
        )

    async def _authorise_device(self, request: Request, client_network: str) -> Response:
        return build_json_response(
            await self._services.authorization.add_device_request(await parse_oauth_request(request), client_network)
        )

    async def _revoke_token(self, request: Request, client_network: str) -> Response:
        await self._services.tokens.revoke(await parse_oauth_request(request), client_network)
        return build_json_response({})

    async def _introspect_token(self, request: Request, client_network: str) -> Response:
        return build_json_response(
            await self._services.tokens.introspect(await parse_oauth_request(request), client_network)
        )

    async def _register_client(self, request: Request, client_network: str) -> Response:
        if _read_media_type(request) != "application/json":
            raise OAuthError("invalid_client_metadata", "Send the metadata as application/json.")
        try:
            metadata = json_body.decode_body(await request.read_body(MAX_BODY_BYTES), MAX_BODY_BYTES)
        except InvalidRequest as error:
            raise OAuthError("invalid_client_metadata", error.detail) from None
        if not isinstance(metadata, dict):
            raise OAuthError("invalid_client_metadata", "The metadata must be a JSON object.")
        return build_json_response(await self._services.clients.register(metadata, client_network), 201)


async def parse_oauth_request(request: Request) -> OAuthRequest:
    """Parse the form parameters and the Authorization header of a request. Raises OAuthError if they are invalid."""
    if _read_media_type(request) != FORM_MEDIA_TYPE:
        raise OAuthError("invalid_request", f"Send the parameters as {FORM_MEDIA_TYPE}.")
    if request.query:
        raise OAuthError(
            "invalid_request", "Send the parameters in the body, not in the URL, where they would be logged."
        )
    pairs = parse_parameters((await request.read_body(MAX_BODY_BYTES)).decode("utf-8", "replace"))
    return OAuthRequest(pairs, _validate_authorization(request.headers.get("authorization")))


def _validate_authorization(header: str | None) -> str | None:
    """Return the Authorization header unchanged.

    Raises OAuthError if the header has malformed Basic credentials (RFC 7617 §2, RFC 6749 §2.3.1).
    """
    scheme, _, credentials = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return header
    try:
        text = unquote(base64.b64decode(credentials.strip(), validate=True).decode())
    except ValueError:
        text = ""
    if ":" not in text or not text.isprintable():
        raise OAuthError(
            "invalid_client",
            "The Authorization header must be Basic with the base64 of client_id:client_secret.",
            headers=CHALLENGE,
        )
    return header


def parse_parameters(text: str) -> tuple[tuple[str, str], ...]:
    """Split a query string or form into pairs of name and value.

    Raises:
        OAuthError: There are too many pairs, or a name or value has a forbidden character (RFC 6749 appendix A).
    """
    try:
        pairs = tuple(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:
        raise OAuthError("invalid_request", f"Send at most {_MAX_FIELDS} parameters.") from None
    if not all(name.isprintable() and value.isprintable() for name, value in pairs):
        raise OAuthError("invalid_request", "A parameter contains a control character.")
    return pairs


def build_json_response(body: Mapping[str, Any], status: int = 200) -> Response:
    """Return a JSON response that browser apps can read and that is not cached."""
    encoded = msgspec.json.encode(body)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(encoded)).encode()),
        *_CORS_HEADERS,
        *_COMMON_HEADERS,
    ]
    return Response(status, headers, encoded)


def build_error_response(error: OAuthError) -> Response:
    """Return the response for an OAuth error (RFC 6749 §5.2)."""
    body = {"error": error.code} | ({"error_description": error.description} if error.description else {})
    response = build_json_response(body, error.status)
    response.headers += [(name.lower().encode(), value.encode()) for name, value in error.headers]
    if error.retry_after is not None:
        response.headers.append((b"retry-after", str(error.retry_after).encode()))
    return response


def _read_media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
