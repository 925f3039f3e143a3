"""The only place that turns errors into answers: application/problem+json (docs/conventions.md#errors)."""

import logging
from typing import Any, Final

import msgspec

from adapters.wire import problems as wire
from domain.kernel.errors import DomainError, FieldError, StorageFull, is_storage_full
from entrypoints.http import resource_metadata
from entrypoints.http.codes import CODES, Code
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.route import COMMON, NO_STORE, VARY
from entrypoints.http.validation import MOST_FAULTS

log = logging.getLogger("joinery.http")

FIXED: Final = {
    "authentication_required": "Send a credential that is in force in the header `Authorization: Bearer <credential>`. An API key starts "
    "with svc_live_, svc_test_, svc_rk_live_ or svc_rk_test_. The answer is the same whether it is missing, not whole, unknown, "
    "revoked, expired, or used from an address that its policy does not allow.",
    "internal_error": "Something went wrong on our side. Try again; if it stays, tell the operator this request_id: it is in the log.",
}
"""Details that must not tell one cause from another."""
WAITS: Final = {"rate_limited": 1, "idempotency_request_in_progress": 1, "overloaded": 2, "unavailable": 5}
"""Retry-After in seconds where the error does not name it."""
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


def _field(fault: FieldError) -> dict[str, str]:
    return {"field": fault.field, "code": fault.code, "detail": fault.detail}


class Problems:
    """Makes problem answers. `docs_url` is where codes are explained, `base_url` where metadata of sign-in stands."""

    def __init__(self, docs_url: str, base_url: str, challenge: str = "") -> None:
        """`challenge` of a 401, where another one than the API's own is meant."""
        self._docs_url = docs_url.rstrip("/")
        said = challenge or f'Bearer resource_metadata="{resource_metadata.address(base_url)}"'
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
