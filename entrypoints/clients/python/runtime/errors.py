"""Errors of the client's methods. All are subclasses of JoineryError."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from .tables import REDIRECTED, UNREADABLE

_MAYBE_DONE = "It is unknown whether the change was made. Read the object before you try again."
_MAX_DIGITS = 12


class JoineryError(Exception):
    """A failed call.

    Attributes:
        status: HTTP status; None if there was no response.
        code: Stable error code for programs; None if the response contains none.
        detail: Explanation for people.
        errors: Invalid fields of the request, each with `field`, `code` and `detail`.
        doc_url: URL of the documentation of the error, or None.
        request_id: ID of the request, or None.
        retry_after: Seconds after which to try again, or None.
        problem: All fields of the response's JSON body; empty without one.
        maybe_done: True if the change may have been made, because the outcome of a try is unknown.
        hint: Advice that the error's text includes; empty for most classes.
    """

    hint = ""

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        problem: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        maybe_done: bool = False,
    ) -> None:
        super().__init__(detail)
        document, header_fields = problem or {}, headers or {}
        self.detail = detail
        self.status = status
        self.problem: Mapping[str, Any] = document
        self.code: str | None = _select_text(document.get("code"))
        errors = document.get("errors")  # a proxy's body may be anything
        self.errors: list[dict[str, str]] = (
            [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
        )
        self.doc_url: str | None = _select_text(document.get("doc_url"))
        self.request_id: str | None = _select_text(document.get("request_id")) or header_fields.get("request-id")
        self.retry_after: float | None = parse_retry_after(header_fields.get("retry-after"))
        self.maybe_done = maybe_done

    def __str__(self) -> str:
        """Return status, code, detail, fields, documentation URL and request ID in one line."""
        head = " ".join(str(part) for part in (self.status, self.code) if part is not None)
        fields = "; ".join(f"{one.get('field')}: {one.get('detail')}" for one in self.errors)
        text = f"{head}: {self.detail}" if head else self.detail
        text += f" ({fields})" if fields else ""
        text += f" {self.hint}" if self.hint else ""
        text += f" {_MAYBE_DONE}" if self.maybe_done else ""
        return " · ".join([text, *(part for part in (self.doc_url, self.request_id) if part)])


class ConnectionFailed(JoineryError):
    """No response, because the server was unreachable or the connection broke."""


class InvalidRequest(JoineryError):
    """HTTP status 400: the request is invalid. `errors` contains the invalid fields."""


class AuthenticationRequired(JoineryError):
    """HTTP status 401: no credential, or an invalid one."""


class PaymentDeclined(JoineryError):
    """HTTP status 402: the card was declined."""


class PermissionDenied(JoineryError):
    """HTTP status 403: the credential lacks a scope, or the plan lacks a feature."""


class NotFound(JoineryError):
    """HTTP status 404: the resource does not exist or is not visible."""


class Conflict(JoineryError):
    """HTTP status 409: the state of the resource does not allow the operation."""


class CursorExpired(JoineryError):
    """HTTP status 410: the events after the cursor are no longer available.

    Start again: call `client.changes.now()`, list the resources that you store, then follow from that cursor.
    """

    hint = "Start again: call changes.now() for a new cursor, list the resources that you store, then follow from the new cursor."


class PreconditionFailed(JoineryError):
    """HTTP status 412: the resource has changed since you read it. HTTP status 428: `if_match` is missing."""


class Unprocessable(JoineryError):
    """HTTP status 413: the body is too large. 415: its media type is not supported. 422: the operation does not accept the request."""


class RateLimited(JoineryError):
    """HTTP status 429: too many requests, or an exceeded quota. Try again after `retry_after` seconds."""


class ServerError(JoineryError):
    """HTTP status 5xx: the server failed or is overloaded."""


class UnexpectedResponse(JoineryError):
    """A successful response (2xx) with an unexpected body, such as a proxy's sign-in page."""

    hint = "Check the service's URL, and whether a proxy responds instead of the service."


class WebhookVerificationError(JoineryError):
    """Webhook request with an invalid signature or time. Respond with status 400 and ignore the event."""


BY_STATUS: Final[Mapping[int, type[JoineryError]]] = {
    400: InvalidRequest,
    401: AuthenticationRequired,
    402: PaymentDeclined,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    410: CursorExpired,
    412: PreconditionFailed,
    413: Unprocessable,
    415: Unprocessable,
    422: Unprocessable,
    428: PreconditionFailed,
    429: RateLimited,
}


def parse_retry_after(retry_after: str | None) -> float | None:
    """Convert the value of a Retry-After header, a number or a date, to seconds from now; None if it is invalid."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) <= _MAX_DIGITS else math.inf
    try:
        at = parsedate_to_datetime(text)
        aware = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0.0, (aware - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):  # raised by the parser for an invalid date
        return None


def build_response_error(response: httpx.Response) -> JoineryError:
    """Return the error for an error response.

    If the response is not a problem document, for example a proxy's page, the detail is the beginning of the body.
    """
    problem = parse_object(response) or {}
    location = response.headers.get("location") if 300 <= response.status_code < 400 else None
    redirect = REDIRECTED.format(location=location) if location else None
    error_class = BY_STATUS.get(response.status_code, ServerError if response.status_code >= 500 else JoineryError)
    detail = _select_text(problem.get("detail")) or redirect or _excerpt_body(response)
    return error_class(detail, status=response.status_code, problem=problem, headers=response.headers)


def build_unexpected_response_error(response: httpx.Response) -> UnexpectedResponse:
    """Return the error for a successful response without the expected body."""
    detail = UNREADABLE.format(beginning=_excerpt_body(response))
    return UnexpectedResponse(detail, status=response.status_code, headers=response.headers)


def parse_object(response: httpx.Response) -> dict[str, Any] | None:
    """Return the JSON object in the body of the response; None if the body is not a JSON object."""
    try:
        value = json.loads(response.content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _select_text(value: Any) -> str | None:
    """Return the value if it is a text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def _excerpt_body(response: httpx.Response) -> str:
    return response.content[:200].decode("utf-8", "replace").strip() or "The response has no body."
