"""Errors of calls: one class per kind, all subclasses of JoineryError."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from .tables import REDIRECTED, UNREADABLE

_MAYBE_DONE = "An earlier try had no clear result and may have been executed. Read the object before you try again."
_MOST_DIGITS = 12


class JoineryError(Exception):
    """A failed call.

    `status` (None without a response), `code` (stable, for programs), `detail` (for people), `errors` (each invalid field as
    {field, code, detail}), `doc_url`, `request_id`, `retry_after` (seconds, or None), `problem` (the whole body).
    `maybe_done`: an earlier try had no clear result, so the change may have been made.
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
        document, given = problem or {}, headers or {}
        self.detail = detail
        self.status = status
        self.problem: Mapping[str, Any] = document
        self.code: str | None = _text(document.get("code"))
        errors = document.get("errors")  # a proxy's body may be anything
        self.errors: list[dict[str, str]] = (
            [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
        )
        self.doc_url: str | None = _text(document.get("doc_url"))
        self.request_id: str | None = _text(document.get("request_id")) or given.get("request-id")
        self.retry_after: float | None = seconds_of(given.get("retry-after"))
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
    """No response: the server was unreachable, or the connection broke. The cause is the underlying error."""


class InvalidRequest(JoineryError):
    """400: the request is invalid; `errors` names the fields."""


class AuthenticationRequired(JoineryError):
    """401: no credential, or an invalid one."""


class PermissionDenied(JoineryError):
    """403: the credential lacks a scope, or the plan lacks a feature."""


class NotFound(JoineryError):
    """404: the resource does not exist or is not visible."""


class Conflict(JoineryError):
    """409: the state of the resource does not allow the operation."""


class CursorExpired(JoineryError):
    """410: the events after this cursor are no longer available.

    Start again: call `client.changes.now()`, list the resources that you store, then follow from that cursor.
    """

    hint = "Start again: call changes.now(), read the lists, then follow from that cursor."


class PreconditionFailed(JoineryError):
    """412: the resource has changed since you read it; 428: `if_match` is missing."""


class Unprocessable(JoineryError):
    """413, 415, 422: the request was understood, but cannot be executed as it is."""


class RateLimited(JoineryError):
    """429: too many requests, or a used-up quota; `retry_after` is the time of the next try."""


class ServerError(JoineryError):
    """5xx: the server failed or is overloaded."""


class UnreadableAnswer(JoineryError):
    """A success (2xx) with an unexpected body, such as a proxy's sign-in page."""

    hint = "Check the service's URL, and whether a proxy responds instead of the service."


class WebhookVerificationError(JoineryError):
    """A webhook with an invalid signature or time: respond with 400 and ignore it."""


BY_STATUS: Final[Mapping[int, type[JoineryError]]] = {
    400: InvalidRequest,
    401: AuthenticationRequired,
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


def seconds_of(retry_after: str | None) -> float | None:
    """Return Retry-After in seconds from now: a number, or a date (RFC 9110 §10.2.3)."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) <= _MOST_DIGITS else math.inf
    try:
        at = parsedate_to_datetime(text)
        aware = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0.0, (aware - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):  # raised by the parser for an invalid date
        return None


def refusal(answer: httpx.Response) -> JoineryError:
    """Return the error of a response. Without a problem document (a proxy's page), the beginning of the body is the detail."""
    problem = object_of(answer) or {}
    location = answer.headers.get("location") if 300 <= answer.status_code < 400 else None
    redirect = REDIRECTED.format(location=location) if location else None
    error_class = BY_STATUS.get(answer.status_code, ServerError if answer.status_code >= 500 else JoineryError)
    detail = _text(problem.get("detail")) or redirect or _beginning(answer)
    return error_class(detail, status=answer.status_code, problem=problem, headers=answer.headers)


def unreadable(answer: httpx.Response) -> UnreadableAnswer:
    """Return the error of a success without the expected body."""
    detail = UNREADABLE.format(beginning=_beginning(answer))
    return UnreadableAnswer(detail, status=answer.status_code, headers=answer.headers)


def object_of(answer: httpx.Response) -> dict[str, Any] | None:
    """Return the JSON object of the response, or None for any other body."""
    try:
        value = json.loads(answer.content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _beginning(answer: httpx.Response) -> str:
    return answer.content[:200].decode("utf-8", "replace").strip() or "The response has no body."
