"""Error responses in the format application/problem+json (docs/conventions.md#errors), and details of 404 responses."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from adapters.api_json import problems as wire
from domain.kernel.errors import DomainError, FieldError, NotFound, StorageFull, is_storage_full
from domain.kernel.ids import NOUNS, find_pattern_prefix, is_id
from entrypoints.http.checks import RequestState
from entrypoints.http.exchange import COMMON_HEADERS, NO_STORE, VARY, HeaderList, Response
from entrypoints.http.representations import build_metadata_url
from entrypoints.operations.codes import CODES, ErrorCode
from entrypoints.operations.operation import Operation
from entrypoints.operations.table import OperationTable
from entrypoints.operations.validation import MAX_FIELD_ERRORS, describe_id

MAX_PARAMETER_LENGTH = 200
"""Maximum characters of a path parameter that is not an ID."""
_SEE_ALL_PATHS = "See /docs or /openapi.json for all paths."
HINT_BY_LIVEMODE = {
    True: "This request accesses live data only. For test data, use a test key.",
    False: "This request accesses test data only. For live data, use a live key.",
}


def is_valid_parameter(text: str) -> bool:
    """Return whether a path parameter that is not an ID is printable and no longer than MAX_PARAMETER_LENGTH."""
    return len(text) <= MAX_PARAMETER_LENGTH and text.isprintable()


class NotFoundMessages:
    """Builder of the error details of 404 responses of the API."""

    def __init__(self, table: OperationTable) -> None:
        self._table = table
        self._operation_by_prefix = _find_operations_by_prefix(table)

    def build_error(self, state: RequestState) -> NotFound:
        """Return the error for a request whose path or resource does not exist.

        The detail helps to correct the request.
        """
        route = state.match.route
        if route is None:
            return NotFound(self.describe_path(state.request.path))
        operation, ids = route.operation, state.match.ids
        for name, text in ids.items():
            prefix = operation.ids.get(name)
            if prefix is not None and not is_id(prefix, text):
                return NotFound(self._describe_wrong_id(prefix, text))
        return NotFound(f"{_describe_missing(operation, ids)} {HINT_BY_LIVEMODE[state.caller.tenant.livemode]}")

    def describe_path(self, path: str) -> str:
        """Return the error detail for an unknown path, with the most similar path."""
        nearest = self._table.find_similar_path(path)
        if nearest is None:
            return f"This path does not exist. {_SEE_ALL_PATHS}"
        return f"This path does not exist. The nearest is {', '.join(nearest[1])} {nearest[0]}. {_SEE_ALL_PATHS}"

    def _describe_wrong_id(self, expected_prefix: str, text: str) -> str:
        prefix = text.partition("_")[0]
        statement = f"This path takes {describe_id(expected_prefix)}"
        if prefix == expected_prefix or prefix not in NOUNS:
            return f"{statement}. The value in the path is not such an ID. Check that you copied the whole ID."
        operation = self._operation_by_prefix.get(prefix)
        hint = f" Send this ID to {operation}" if operation else ""
        return f"{statement}. The value starts with {prefix}_, so it is the ID of {NOUNS[prefix]}.{hint}"


def _describe_missing(operation: Operation, ids: Mapping[str, str]) -> str:
    nouns = [NOUNS[operation.ids[name]] for name in ids if name in operation.ids]
    if not nouns:
        return "This resource does not exist or is not visible to you."
    if len(nouns) == 1:
        return f"There is no {_without_article(nouns[0])} with this ID, or it is not visible to you."
    parent, child = _without_article(nouns[0]), _without_article(nouns[-1])
    return f"The {parent} does not exist, has no {child} with this ID, or is not visible to you."


def _without_article(noun: str) -> str:
    return noun.partition(" ")[2]


def _find_operations_by_prefix(table: OperationTable) -> dict[str, str]:
    """Return, by ID prefix, an operation to which IDs with the prefix can be sent, such as `GET /v1/products/{id}`."""
    operation_by_prefix: dict[str, str] = {}
    for operation in sorted(table, key=lambda row: (row.method != "GET", len(row.path))):
        for prefix in list(operation.ids.values())[-1:]:
            operation_by_prefix.setdefault(prefix, f"{operation.method} {operation.path}")
    for operation in table:
        for name, schema in operation.query.items():
            query_prefix = find_pattern_prefix(str(schema.get("items", schema).get("pattern", "")))
            if query_prefix is not None:
                operation_by_prefix.setdefault(
                    query_prefix, f"{operation.method} {operation.path}?{name}={query_prefix}_…"
                )
    return operation_by_prefix


log = logging.getLogger("joinery.http")

FIXED_DETAILS = {
    "authentication_required": "Send a valid credential in the header `Authorization: Bearer <credential>`. An API key starts "
    "with svc_live_, svc_test_, svc_rk_live_ or svc_rk_test_. The response is the same for a missing, incomplete, unknown, "
    "revoked or expired credential, and for an IP address that the credential's policy does not allow.",
    "internal_error": "An unexpected error occurred. Try again. If the error persists, give the operator the request_id.",
}
"""Error details by code, for errors whose cause must not be revealed."""
RETRY_AFTER_BY_CODE = {"rate_limited": 1, "idempotency_request_in_progress": 1, "overloaded": 2, "unavailable": 5}
"""Retry-After in seconds by error code, for errors that do not set it."""
_encode = msgspec.json.Encoder(decimal_format="number").encode


def _field_error_json(field_error: FieldError) -> dict[str, str]:
    return {"field": field_error.field, "code": field_error.code, "detail": field_error.detail}


class ProblemResponses:
    """Builder of problem responses.

    Args:
        docs_url: URL of the documentation, which explains each error code.
        base_url: URL of the service.
        challenge: The WWW-Authenticate header of responses with status 401; empty for the default of the API.
    """

    def __init__(self, docs_url: str, base_url: str, challenge: str = "") -> None:
        """Create a builder."""
        self._docs_url = docs_url.rstrip("/")
        statement = challenge or f'Bearer resource_metadata="{build_metadata_url(base_url)}"'
        self._challenge = (b"www-authenticate", statement.encode())

    def to_domain_error(self, error: BaseException, request_id: str) -> DomainError:
        """Convert an error to a DomainError. An unexpected error is logged, and converted to `internal_error`."""
        if isinstance(error, DomainError) and error.code in CODES and error.code != "internal_error":
            return error
        if is_storage_full(error):
            log.error("no space left on the disk", extra={"request_id": request_id})
            return StorageFull()
        log.error("unexpected error", exc_info=error, extra={"request_id": request_id})
        return DomainError()

    def get_status(self, error: DomainError) -> int:
        """Return the HTTP status that belongs to the error's code."""
        return CODES[error.code].status

    def respond(self, error: DomainError, request_id: str) -> Response:
        """Return the problem response for an error."""
        code = CODES[error.code]
        body = _encode(self._build_body(code, error, request_id))
        return Response(code.status, self._build_headers(code, error), body)

    def _build_body(self, code: ErrorCode, error: DomainError, request_id: str) -> dict[str, Any]:
        address = f"{self._docs_url}/errors/{code.name}"
        detail = FIXED_DETAILS.get(code.name, error.detail)
        body = wire.render_problem(address, code.title, code.status, code.name, detail, request_id)
        if code.name == "invalid_request" or error.fields:
            body["errors"] = [_field_error_json(field_error) for field_error in error.fields[:MAX_FIELD_ERRORS]]
        return body | {name: value for name, value in error.extra.items() if name not in ("allow", *body)}

    def _build_headers(self, code: ErrorCode, error: DomainError) -> HeaderList:
        headers: HeaderList = [(b"content-type", wire.MEDIA_TYPE.encode()), VARY, NO_STORE, *COMMON_HEADERS]
        if code.status == 401:
            headers.append(self._challenge)
        wait = error.retry_after if error.retry_after is not None else RETRY_AFTER_BY_CODE.get(code.name)
        if wait is not None:
            headers.append((b"retry-after", str(wait).encode()))
        if "allow" in error.extra:
            headers.append((b"allow", str(error.extra["allow"]).encode()))
        return headers
