"""Requests with hostile headers, parameters and bodies: refused without an internal error."""

import asyncio
import itertools
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

from domain.kernel.tenancy import Tenant
from domain.secrets.keys import ActiveKeys
from entrypoints.console.pages import PAGES
from entrypoints.console.security import CSRF_FIELD, ValueSigner
from entrypoints.http.exchange import READ_HEADERS
from entrypoints.operations.query_string import list_query_parameters
from tests.fuzz.exploration import Effort, parametrize_effort
from tests.http.client import Client, Response
from tests.support.console_browser import create_session
from tests.tenancy.application import OPERATIONS, ServedApplication, Tenancy, build_path, serve_application

pytestmark = [pytest.mark.slow, pytest.mark.asyncio]
VALUES = (
    "\0",
    "\x01\x1b\x7f",
    "",
    "." * 12_000,
    "9" * 5_000,
    "%00",
    "%ff%C3%28%ZZ%",
    "%ED%A0%80",
    "\xc3\x28\xff\xe9",
    "[",
    "http://[",
    "\\" * 8_000,
    '"' + "\\\\" * 4_000 + '"',
    "," * 8_000,
    "a=" * 4_000,
    "Basic AAAA",
    "Basic //////8=",
    "Bearer \xff\0",
    "-1",
    "1e999999",
    "٣",
    "*/*;q=" + "9" * 400,
    "bytes=" + "0-0," * 2_000,
    "xn--" + "a" * 300,
    "../" * 1_000,
)
HEADERS = (
    *(name for name in READ_HEADERS if name not in ("content-length", "transfer-encoding")),
    "host", "cookie", "accept", "accept-language", "range", "if-range", "if-modified-since", "if-unmodified-since", "referer",
    "hx-request", "hx-target", "hx-current-url", "sec-fetch-site", "sec-fetch-mode", "x-forwarded-proto", "x-forwarded-host",
    "x-csrf", "access-control-request-method", "access-control-request-headers", "mcp-protocol-version", "mcp-session-id",
    "mcp-method", "mcp-name", "upgrade", "connection", "te", "via", "expect", "tracestate", "x-http-method-override",
)  # fmt: skip
OTHERS = (
    ("GET", "/oauth/authorize", ("client_id", "redirect_uri", "scope", "state", "code_challenge", "resource", "prompt", "response_type")),
    ("POST", "/oauth/token", ("grant_type", "client_id", "client_secret", "code", "refresh_token", "device_code", "redirect_uri", "code_verifier", "resource")),
    ("POST", "/oauth/device", ("client_id", "scope", "resource")),
    ("POST", "/oauth/revoke", ("token", "client_id", "token_type_hint")),
    ("POST", "/oauth/introspect", ("token", "client_id")),
    ("POST", "/oauth/register", ()),
    ("POST", "/mcp", ()),
    ("GET", "/mcp", ()),
    *(
        ("GET", path, ("q", "from", "cursor"))
        for path in (
            "/", "/docs", "/docs/search", "/docs/guides/oauth", "/openapi.json", "/errors", "/status", "/healthz", "/readyz", "/metrics",
            "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource", "/.well-known/nothing",
            "/objects/nothing", "/clients", "/v1/nothing", "/nothing",
        )
    ),
)  # fmt: skip
BODIES = (
    b'{"client_name":"\\ud800x","redirect_uris":["http://127.0.0.1/cb"],"token_endpoint_auth_method":"none"}',
    b'{"client_name":"\\u0000x","redirect_uris":["http://127.0.0.1/cb"],"token_endpoint_auth_method":"none"}',
    b'{"redirect_uris":["http://[","\\ud800"],"client_uri":"http://[","scope":"\\u0000","grant_types":[1]}',
    b"[" * 60_000,
    b'{"a":' * 10_000,
    b"1" * 60_000,
    b'{"name":1e999999}',
    b'{"a":"\xff"}',
    b"\xff\xfe{\0}\0",
    b"NaN",
    b"\0",
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"\\u0000","params":{"name":"\\ud800"}}',
    b"",
)
STREAM = "/console/developers/events/stream/"
"""Only page that ends when its client disconnects."""
PATIENCE = 5.0
HANGS = 60.0
"""Seconds without a response after which a request hangs."""
MOST = 4
"""Requests of a route in the short form."""


@dataclass(frozen=True)
class Route:
    """Target of requests with its known parameters; a `form` takes them in its body."""

    method: str
    path: str
    parameters: tuple[str, ...] = ()
    form: bool = False
    page: bool = False


@dataclass
class RequestSender:
    """Sender of requests, with an API key or a person's session."""

    application: ServedApplication
    mine: Tenancy
    cookie: str
    token: str
    routes: list[Route] = field(default_factory=list)

    async def send(self, route: Route, name: str, value: str) -> Response:
        """Send the value as that header or parameter."""
        headers = {"host": "api.joinery.example", "sec-fetch-site": "same-origin"}
        if route.page:
            headers |= {"cookie": self.cookie, f"x-{CSRF_FIELD}": self.token}
        query, body = "", None
        if name in HEADERS:
            headers[name] = value.encode("utf-8").decode("latin-1")
        elif route.form:
            body = f"{name}={quote(value, safe='%')}".encode()
        else:
            query = f"?{name}={quote(value, safe='%')}"
        if route.form:
            headers.setdefault("content-type", "application/x-www-form-urlencoded")
        client = Client(self.application.app, None) if route.page or route.path[:3] != "/v1" else self.mine.client
        return await client.send(route.method, route.path + query, body=body, headers=headers)


def _list_routes(mine: Tenancy) -> Iterator[Route]:
    for operation in OPERATIONS:
        if not operation.is_stream:
            yield Route(operation.method, build_path(operation, mine.ids), tuple(list_query_parameters(operation)))
    for page in PAGES:
        path = "/".join(quote("\0é") if part.startswith("<") else part for part in page.path_pattern.split("/"))
        for method in page.methods:
            yield Route(method, path, ("q", "id", "next", "name", "email", "from"), form=method == "POST", page=True)
    for method, path, parameters in OTHERS:
        yield Route(method, path, parameters, form=method == "POST" and bool(parameters))


async def _create_sender(application: ServedApplication) -> RequestSender:
    organisation = await application.create_organisation()
    mine = await application.create_tenancy(organisation, False)
    session = await create_session(application.dependencies, Tenant(organisation.id, False))
    token = ValueSigner(application.dependencies[ActiveKeys].link_keys).create_signature("form", "")
    return RequestSender(application, mine, f"joinery={session}", token, list(_list_routes(mine)))


@parametrize_effort(examples=MOST, parts=8)
async def test_hostile_headers_and_parameters_cause_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, effort: Effort
) -> None:
    """Each route gets some pairs of name and value, and each pair some routes; the long form combines all."""
    async with serve_application(tmp_path) as application:
        sender = await _create_sender(application)
        most = MOST if effort.seconds is None else None
        for turning, route in enumerate(sender.routes):
            pairs = list(itertools.product((*route.parameters, *HEADERS), VALUES))
            step = 1 if most is None else max(1, len(pairs) // most) | 1
            for name, value in pairs[turning % step :: step]:
                streams = route.path.startswith(STREAM)
                try:
                    async with asyncio.timeout(PATIENCE if streams else HANGS):
                        answer = await sender.send(route, name, value)
                except TimeoutError:
                    assert streams, (route, name, value[:60])
                    break
                assert answer.status < 500, (route, name, value[:60], answer.body[:500])
    assert not _list_errors(caplog)


async def test_hostile_bodies_cause_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serve_application(tmp_path) as application:
        sender = await _create_sender(application)
        for route in sender.routes:
            if route.method in ("POST", "PATCH", "PUT") and not route.page:
                for body in BODIES:
                    headers = {"content-type": "application/json", "if-match": "*", "host": "api.joinery.example"}
                    client = (
                        sender.mine.client
                        if route.path[:3] == "/v1" or route.path == "/mcp"
                        else Client(application.app, None)
                    )
                    answer = await client.send(route.method, route.path, body=body, headers=headers)
                    assert answer.status < 500, (route, body[:60], answer.body[:500])
    assert not _list_errors(caplog)


def _list_errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info]
