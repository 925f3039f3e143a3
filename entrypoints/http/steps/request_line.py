"""First and second step: a request line that is too long or not well formed is refused before anything else is looked at."""

from typing import Final

from domain.kernel.errors import FieldError, InvalidRequest
from domain.kernel.ids import is_id, new_id
from entrypoints.http.exchange import Request
from entrypoints.http.request_state import RequestState

LONGEST: Final = 8192
"""Characters of path and query together (RFC 9110 §4.1 asks for at least 8,000)."""


def read_request_line(state: RequestState) -> None:
    """Refuse a request line over LONGEST or with characters that may not stand in one."""
    request = state.request
    if len(request.path) + len(request.query) > LONGEST:
        detail = f"Path and query together have more than {LONGEST} characters; ask for less at once."
        raise InvalidRequest(detail, fields=(FieldError("query", "too_long", detail),))
    if not (request.path.isascii() and request.path.isprintable() and request.path.startswith("/")):
        raise InvalidRequest(
            "The path holds characters that may not stand in an address; percent-encode them (RFC 3986)."
        )
    if not (request.query.isascii() and request.query.isprintable()):
        raise InvalidRequest(
            "The query holds characters that may not stand in an address; percent-encode them (RFC 3986)."
        )


def request_id_of(request: Request) -> str:
    """The client's `req_…` when it is well formed, else a new one."""
    given = request.headers.get("request-id", "")
    return given if is_id("req", given) else new_id("req")


def give_request_id(state: RequestState) -> None:
    """Set the request's id."""
    state.request_id = request_id_of(state.request)
