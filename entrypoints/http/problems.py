"""Error responses as application/problem+json (docs/conventions.md#errors), and the details of 404 responses."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from adapters.wire import problems as wire
from domain.kernel.errors import DomainError, FieldError, NotFound, StorageFull, is_storage_full
from domain.kernel.ids import NOUNS, is_id, prefix_in
from entrypoints.http.checks import RequestState
from entrypoints.http.exchange import COMMON, NO_STORE, VARY, HeaderList, Response
from entrypoints.http.representations import metadata_address
from entrypoints.operations.codes import CODES, Code
from entrypoints.operations.operation import Operation
from entrypoints.operations.table import Table
from entrypoints.operations.validation import MOST_FAULTS, id_words

LONGEST_WORD = 200
"""Maximum characters of a path parameter that is not an ID."""
_SEE_ALL_PATHS = "See /docs or /openapi.json for all paths."
MODES = {
    True: "Your credential sees live data only. For test data, use a test key.",
    False: "Your credential sees test data only. For live data, use a live key.",
}


def is_word(text: str) -> bool:
    """Return whether a path parameter that is not an ID may be looked up."""
    return len(text) <= LONGEST_WORD and text.isprintable()


class Absence:
    """Builder of the details of every 404 response under /v1."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._operation_by_prefix = _find_operations_by_prefix(table)

    def worded(self, state: RequestState) -> NotFound:
        """Return the error of a request whose path or resource was not found."""
        route = state.match.route
        if route is None:
            return NotFound(self.of_path(state.request.path))
        operation, ids = route.operation, state.match.ids
        for name, text in ids.items():
            prefix = operation.ids.get(name)
            if prefix is not None and not is_id(prefix, text):
                return NotFound(self._wrong_kind(prefix, text))
        return NotFound(f"{_describe_missing(operation, ids)} {MODES[state.caller.tenant.livemode]}")

    def of_path(self, path: str) -> str:
        """Return the detail for an unknown path, with the nearest known one."""
        near = self._table.nearest(path)
        if near is None:
            return f"This path does not exist. {_SEE_ALL_PATHS}"
        return f"This path does not exist. The nearest is {', '.join(near[1])} {near[0]}. {_SEE_ALL_PATHS}"

    def _wrong_kind(self, expected: str, text: str) -> str:
        prefix = text.partition("_")[0]
        statement = f"This path takes {id_words(expected)}"
        if prefix == expected or prefix not in NOUNS:
            return f"{statement}. The value is not one. Check that you copied the whole ID."
        place = self._operation_by_prefix.get(prefix)
        where = f" Send it to {place}" if place else ""
        return f"{statement}. The value starts with {prefix}_, so it is the ID of {NOUNS[prefix]}.{where}"


def _describe_missing(operation: Operation, ids: Mapping[str, str]) -> str:
    kinds = [NOUNS[operation.ids[name]] for name in ids if name in operation.ids]
    if not kinds:
        return "This resource does not exist or is not visible to you."
    if len(kinds) == 1:
        return f"There is no {_without_article(kinds[0])} with this ID, or it is not visible to you."
    return f"There is no {_without_article(kinds[0])} with this ID, or it has no {_without_article(kinds[-1])} with that ID, or they are not visible to you."


def _without_article(noun: str) -> str:
    return noun.partition(" ")[2]


def _find_operations_by_prefix(table: Table) -> dict[str, str]:
    """Return for each ID prefix an operation that takes such an ID: in the path, else as a query parameter."""
    places: dict[str, str] = {}
    for operation in sorted(table, key=lambda row: (row.method != "GET", len(row.path))):
        for prefix in list(operation.ids.values())[-1:]:
            places.setdefault(prefix, f"{operation.method} {operation.path}")
    for operation in table:
        for name, schema in operation.query.items():
            kind = prefix_in(str(schema.get("items", schema).get("pattern", "")))
            if kind is not None:
                places.setdefault(kind, f"{operation.method} {operation.path}?{name}={kind}_…")
    return places


log = logging.getLogger("joinery.http")

FIXED = {
    "authentication_required": "Send a valid credential in the header `Authorization: Bearer <credential>`. An API key starts "
    "with svc_live_, svc_test_, svc_rk_live_ or svc_rk_test_. The response is the same for a missing, incomplete, unknown, "
    "revoked or expired credential, and for an address that its policy does not allow.",
    "internal_error": "An unexpected error occurred. Try again. If it persists, give the operator this request_id, which is in the log.",
}
"""Details that must not reveal the cause."""
WAITS = {"rate_limited": 1, "idempotency_request_in_progress": 1, "overloaded": 2, "unavailable": 5}
"""Retry-After in seconds, where the error does not set it."""
_encode = msgspec.json.Encoder(decimal_format="number").encode


def _field(fault: FieldError) -> dict[str, str]:
    return {"field": fault.field, "code": fault.code, "detail": fault.detail}


class Problems:
    """Builder of problem responses. `docs_url` documents the codes, `base_url` has the OAuth metadata."""

    def __init__(self, docs_url: str, base_url: str, challenge: str = "") -> None:
        """Create a builder; `challenge` replaces the API's own WWW-Authenticate header of a 401."""
        self._docs_url = docs_url.rstrip("/")
        statement = challenge or f'Bearer resource_metadata="{metadata_address(base_url)}"'
        self._challenge = (b"www-authenticate", statement.encode())

    def known(self, error: BaseException, request_id: str) -> DomainError:
        """Return the error as a DomainError; an unexpected one is logged in full and becomes internal_error."""
        if isinstance(error, DomainError) and error.code in CODES and error.code != "internal_error":
            return error
        if is_storage_full(error):
            log.error("no space left on the disk", extra={"request_id": request_id})
            return StorageFull()
        log.error("unexpected error", exc_info=error, extra={"request_id": request_id})
        return DomainError()

    def status(self, error: DomainError) -> int:
        """Return the HTTP status of the error's code."""
        return CODES[error.code].status

    def answer(self, error: DomainError, request_id: str) -> Response:
        """Return the problem response of the error."""
        code = CODES[error.code]
        body = _encode(self._body(code, error, request_id))
        return Response(code.status, self._headers(code, error), body)

    def _body(self, code: Code, error: DomainError, request_id: str) -> dict[str, Any]:
        address = f"{self._docs_url}/errors/{code.name}"
        detail = FIXED.get(code.name, error.detail)
        body = wire.to_wire(address, code.title, code.status, code.name, detail, request_id)
        if code.name == "invalid_request" or error.fields:
            body["errors"] = [_field(fault) for fault in error.fields[:MOST_FAULTS]]
        return body | {name: value for name, value in error.extra.items() if name not in ("allow", *body)}

    def _headers(self, code: Code, error: DomainError) -> HeaderList:
        headers: HeaderList = [(b"content-type", wire.MEDIA_TYPE.encode()), VARY, NO_STORE, *COMMON]
        if code.status == 401:
            headers.append(self._challenge)
        wait = error.retry_after if error.retry_after is not None else WAITS.get(code.name)
        if wait is not None:
            headers.append((b"retry-after", str(wait).encode()))
        if "allow" in error.extra:
            headers.append((b"allow", str(error.extra["allow"]).encode()))
        return headers
