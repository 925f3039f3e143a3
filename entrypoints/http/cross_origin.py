"""Answering browsers' preflight questions: any origin may call, credentials go by Authorization only."""

from typing import Final

from domain.kernel.ids import is_id, new_id
from entrypoints.http.exchange import Request, Response
from entrypoints.http.route import COMMON, CROSS_ORIGIN
from entrypoints.http.table import Table

METHODS: Final = "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS"
HEADERS: Final = (
    b"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Request-Id, "
    b"Service-Dry-Run, Service-Mode, Service-Version"
)


def preflight(table: Table, request: Request) -> Response:
    """The answer to OPTIONS (WHATWG Fetch, CORS preflight). It needs no credential and does not tell what exists."""
    allowed = ", ".join(table.find("OPTIONS", request.path).allowed) or METHODS
    given = request.headers.get("request-id", "")
    headers = [
        *COMMON,
        *CROSS_ORIGIN,
        (b"allow", allowed.encode()),
        (b"access-control-allow-methods", allowed.encode()),
        (b"access-control-allow-headers", HEADERS),
        (b"access-control-max-age", b"86400"),
        (b"request-id", (given if is_id("req", given) else new_id("req")).encode()),
    ]
    return Response(204, headers)
