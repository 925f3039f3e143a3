"""The only place that turns errors into answers: application/problem+json (docs/conventions.md#errors), with what a 404 says."""

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
"""Characters of a path parameter that is no id."""
_ALL = "/docs and /openapi.json have every path."
MODES = {
    True: "Your credential works on live data here and sees no test data: for something made in test mode use a test key.",
    False: "Your credential works on test data here and sees no live data: for something made in live mode use a live key.",
}


def is_word(text: str) -> bool:
    """Whether a path parameter that is no id may be looked up."""
    return len(text) <= LONGEST_WORD and text.isprintable()


class Absence:
    """Words every 404 under /v1."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._places = _places_of(table)

    def worded(self, state: RequestState) -> NotFound:
        """The refusal of a request that found nothing."""
        route = state.match.route
        if route is None:
            return NotFound(self.of_path(state.request.path))
        operation, ids = route.operation, state.match.ids
        for name, text in ids.items():
            prefix = operation.ids.get(name)
            if prefix is not None and not is_id(prefix, text):
                return NotFound(self._wrong_kind(prefix, text))
        return NotFound(f"{_nothing(operation, ids)} {MODES[state.caller.tenant.livemode]}")

    def of_path(self, path: str) -> str:
        """What to say of a path that nobody serves."""
        near = self._table.nearest(path)
        if near is None:
            return f"There is no such path. {_ALL}"
        return f"There is no such path. The nearest is {', '.join(near[1])} {near[0]}. {_ALL}"

    def _wrong_kind(self, wanted: str, text: str) -> str:
        prefix = text.partition("_")[0]
        said = f"This address takes {id_words(wanted)}"
        if prefix == wanted or prefix not in NOUNS:
            return f"{said}; what stands there is not one. Check that the id was copied whole."
        place = self._places.get(prefix)
        where = f" Send it to {place}" if place else ""
        return f"{said}; what stands there starts with {prefix}_, as does the id of {NOUNS[prefix]}.{where}"


def _nothing(operation: Operation, ids: Mapping[str, str]) -> str:
    kinds = [NOUNS[operation.ids[name]] for name in ids if name in operation.ids]
    if not kinds:
        return "There is nothing here that you can see."
    if len(kinds) == 1:
        return f"There is no {_bare(kinds[0])} with this id that you can see."
    return f"There is no {_bare(kinds[0])} with this id that you can see, or it has no {_bare(kinds[-1])} with that id."


def _bare(noun: str) -> str:
    return noun.partition(" ")[2]


def _places_of(table: Table) -> dict[str, str]:
    """For each kind of id, an operation that takes it: in the path, else as a query parameter."""
    places: dict[str, str] = {}
    for operation in sorted(table, key=lambda one: (one.method != "GET", len(one.path))):
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
    "authentication_required": "Send a credential that is in force in the header `Authorization: Bearer <credential>`. An API key starts "
    "with svc_live_, svc_test_, svc_rk_live_ or svc_rk_test_. The answer is the same whether it is missing, not whole, unknown, "
    "revoked, expired, or used from an address that its policy does not allow.",
    "internal_error": "Something went wrong on our side. Try again; if it stays, tell the operator this request_id: it is in the log.",
}
"""Details that must not tell one cause from another."""
WAITS = {"rate_limited": 1, "idempotency_request_in_progress": 1, "overloaded": 2, "unavailable": 5}
"""Retry-After in seconds where the error does not name it."""
_encode = msgspec.json.Encoder(decimal_format="number").encode


def _field(fault: FieldError) -> dict[str, str]:
    return {"field": fault.field, "code": fault.code, "detail": fault.detail}


class Problems:
    """Makes problem answers. `docs_url` is where codes are explained, `base_url` where metadata of sign-in stands."""

    def __init__(self, docs_url: str, base_url: str, challenge: str = "") -> None:
        """`challenge` of a 401, where another one than the API's own is meant."""
        self._docs_url = docs_url.rstrip("/")
        said = challenge or f'Bearer resource_metadata="{metadata_address(base_url)}"'
        self._challenge = (b"www-authenticate", said.encode())

    def known(self, error: BaseException, request_id: str) -> DomainError:
        """The error as a DomainError: whatever was not foreseen becomes internal_error and is logged in full."""
        if isinstance(error, DomainError) and error.code in CODES and error.code != "internal_error":
            return error
        if is_storage_full(error):
            log.error("no space left on the disk", extra={"request_id": request_id})
            return StorageFull()
        log.error("unexpected error", exc_info=error, extra={"request_id": request_id})
        return DomainError()

    def status(self, error: DomainError) -> int:
        """The HTTP status of the error's code."""
        return CODES[error.code].status

    def answer(self, error: DomainError, request_id: str) -> Response:
        """The answer that tells the error."""
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
