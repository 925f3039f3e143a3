"""OAuth endpoints for programs: token, revocation, introspection, registration, device authorisation, and metadata.

Responses and errors have the form of the RFCs, not that of the API's problems, and must not be cached.
"""

import base64
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

from domain.kernel.errors import DomainError, InvalidRequest, PayloadTooLarge, Unavailable
from domain.oauth.asking import Call
from domain.oauth.errors import CHALLENGE, OAuthError
from domain.oauth.ports import GrantRules
from domain.oauth.usecases.apps import AppService
from domain.oauth.usecases.clients import Clients
from domain.oauth.usecases.consent import ConsentService
from domain.oauth.usecases.grants import GrantService
from domain.oauth.usecases.tokens import TokenService
from domain.people.usecases.throttling import network_of
from entrypoints.http import body as json_body
from entrypoints.http.addresses import Proxies
from entrypoints.http.exchange import HeaderList, Request, Response

LONGEST = 64 * 1024
LOG = logging.getLogger("joinery.oauth")
FORM = "application/x-www-form-urlencoded"
_FIELDS = 100
_COMMON: Final[HeaderList] = [
    (b"cache-control", b"no-store"),
    (b"pragma", b"no-cache"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_OPEN: Final[HeaderList] = [(b"access-control-allow-origin", b"*")]
"""Browser apps call from their own origin; cookies are not used."""
_PREFLIGHT: Final[HeaderList] = [
    *_OPEN,
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type, mcp-protocol-version"),
    (b"access-control-max-age", b"7200"),
]
Answering = Callable[[Request, str], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class OAuthServices:
    """Services of the endpoints and pages; `apps` and `grants` are used by the console's page of apps."""

    rules: GrantRules
    clients: Clients
    tokens: TokenService
    consent: ConsentService
    apps: AppService
    grants: GrantService


class OAuthEndpoints:
    """The OAuth endpoints of a process. `proxies` determines the client's address."""

    def __init__(self, services: OAuthServices, proxies: Proxies) -> None:
        self._services, self._proxies = services, proxies
        self._metadata = msgspec.json.encode(services.rules.server())
        self.by_path: Mapping[str, Answering] = {
            "/oauth/token": self._token,
            "/oauth/device": self._device,
            "/oauth/revoke": self._revoke,
            "/oauth/introspect": self._introspect,
            "/oauth/register": self._register,
        }

    async def answer(self, request: Request) -> Response:
        """Return the response to a request for one of the paths, in all cases."""
        if request.method == "OPTIONS":
            return self.preflight()
        if request.method != "POST":
            error = OAuthError(
                "invalid_request", "This endpoint supports POST only.", status=405, headers=(("Allow", "POST"),)
            )
            return refusal(error)
        address = network_of(self._proxies.client(request.client, request.headers))
        try:
            return await self.by_path[request.path](request, address)
        except OAuthError as error:
            return refusal(error)
        except Unavailable as error:
            return refusal(
                OAuthError(
                    "temporarily_unavailable",
                    "The service is temporarily unavailable. Try again later.",
                    retry_after=error.retry_after or 5,
                )
            )
        except DomainError as error:
            status = 413 if isinstance(error, PayloadTooLarge) else 400
            return refusal(OAuthError("invalid_request", "The body is invalid or too large.", status=status))
        except Exception:
            LOG.exception("OAuth endpoint failed")
            return refusal(OAuthError("server_error", "An unexpected error occurred."))

    @staticmethod
    def preflight() -> Response:
        """Return the CORS preflight response."""
        return Response(204, [*_PREFLIGHT, *_COMMON])

    def metadata(self) -> Response:
        """Return the server metadata (RFC 8414)."""
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"public, max-age=300"), *_OPEN]
        return Response(200, headers, self._metadata)

    async def _token(self, request: Request, address: str) -> Response:
        return told(await self._services.tokens.token(await call_of(request), address))

    async def _device(self, request: Request, address: str) -> Response:
        return told(await self._services.consent.begin_device(await call_of(request), address))

    async def _revoke(self, request: Request, address: str) -> Response:
        await self._services.tokens.revoke(await call_of(request), address)
        return told({})

    async def _introspect(self, request: Request, address: str) -> Response:
        return told(await self._services.tokens.introspect(await call_of(request), address))

    async def _register(self, request: Request, address: str) -> Response:
        if _media_type(request) != "application/json":
            raise OAuthError("invalid_client_metadata", "Send the metadata as application/json.")
        try:
            metadata = json_body.decode(await request.read_body(LONGEST), LONGEST)
        except InvalidRequest as error:
            raise OAuthError("invalid_client_metadata", error.detail) from None
        if not isinstance(metadata, dict):
            raise OAuthError("invalid_client_metadata", "The metadata must be a JSON object.")
        return told(await self._services.clients.register(metadata, address), 201)


async def call_of(request: Request) -> Call:
    """Parse the form of a request. Raises OAuthError if it is invalid."""
    if _media_type(request) != FORM:
        raise OAuthError("invalid_request", f"Send the parameters as {FORM}.")
    if request.query:
        raise OAuthError(
            "invalid_request", "Send the parameters in the body, not in the URL, where they would be logged."
        )
    pairs = pairs_of((await request.read_body(LONGEST)).decode("utf-8", "replace"))
    return Call(pairs, _authorization(request.headers.get("authorization")))


def _authorization(header: str | None) -> str | None:
    """Return the Authorization header, checked if it contains Basic credentials (RFC 7617 §2, RFC 6749 §2.3.1)."""
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


def pairs_of(text: str) -> tuple[tuple[str, str], ...]:
    """Split a query or form into its parameters.

    Raises:
        OAuthError: There are too many, or one contains a character that is not allowed (RFC 6749 appendix A).

    """
    try:
        pairs = tuple(parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS))
    except ValueError:
        raise OAuthError("invalid_request", "There are too many parameters.") from None
    if not all(name.isprintable() and value.isprintable() for name, value in pairs):
        raise OAuthError("invalid_request", "A parameter contains a control character.")
    return pairs


def told(body: Mapping[str, Any], status: int = 200) -> Response:
    """Return a JSON response."""
    encoded = msgspec.json.encode(body)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(encoded)).encode()),
        *_OPEN,
        *_COMMON,
    ]
    return Response(status, headers, encoded)


def refusal(error: OAuthError) -> Response:
    """Return an error response (RFC 6749 §5.2)."""
    body = {"error": error.code} | ({"error_description": error.description} if error.description else {})
    answer = told(body, error.status)
    answer.headers += [(name.lower().encode(), value.encode()) for name, value in error.headers]
    if error.retry_after is not None:
        answer.headers.append((b"retry-after", str(error.retry_after).encode()))
    return answer


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
