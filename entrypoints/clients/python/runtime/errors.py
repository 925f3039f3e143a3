"""What calls raise: one class for each kind of refusal, all of them JoineryError."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from .tables import REDIRECTED, UNREADABLE

_MAYBE_DONE = "An earlier try got no clear answer and may have been carried out: read the object before you try again."
_MOST_DIGITS = 12


class JoineryError(Exception):
    """A call that failed.

    `status` (None without an answer), `code` (stable; what programs compare), `detail` (for people), `errors` (each
    wrong field as {field, code, detail}), `doc_url`, `request_id`, `retry_after` (seconds, or None), `problem` (the
    whole body). `maybe_done` tells that a try before got no clear answer, so that the change may have been made.
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
        errors = document.get("errors")  # a proxy's may be anything
        self.errors: list[dict[str, str]] = (
            [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
        )
        self.doc_url: str | None = _text(document.get("doc_url"))
        self.request_id: str | None = _text(document.get("request_id")) or given.get("request-id")
        self.retry_after: float | None = seconds_of(given.get("retry-after"))
        self.maybe_done = maybe_done

    def __str__(self) -> str:
        """All that helps, in one line: status, code, detail, fields, address of the explanation, request id."""
        head = " ".join(str(part) for part in (self.status, self.code) if part is not None)
        fields = "; ".join(f"{one.get('field')}: {one.get('detail')}" for one in self.errors)
        text = f"{head}: {self.detail}" if head else self.detail
        text += f" ({fields})" if fields else ""
        text += f" {self.hint}" if self.hint else ""
        text += f" {_MAYBE_DONE}" if self.maybe_done else ""
        return " · ".join([text, *(part for part in (self.doc_url, self.request_id) if part)])


class ConnectionFailed(JoineryError):
    """No answer: the server could not be reached, or the connection broke. Its cause is the error that tells how."""


class InvalidRequest(JoineryError):
    """400: the request is wrong; `errors` names the fields."""


class AuthenticationRequired(JoineryError):
    """401: no credential, or none that counts."""


class PermissionDenied(JoineryError):
    """403: the credential lacks a scope, or the plan a feature."""


class NotFound(JoineryError):
    """404."""


class Conflict(JoineryError):
    """409: the state of the thing does not allow it."""


class CursorExpired(JoineryError):
    """410: the events after this cursor are gone.

    Read everything anew: take `client.changes.now()` first, then list what you keep, then follow from that cursor.
    """

    hint = "Begin again: take changes.now(), read the lists, then follow from that cursor."


class PreconditionFailed(JoineryError):
    """412: somebody changed it since you read it; 428: `if_match` is missing."""


class Unprocessable(JoineryError):
    """413, 415, 422: understood, and it cannot be done like this."""


class RateLimited(JoineryError):
    """429: too many requests, or a quota that is used up; `retry_after` tells when to try again."""


class ServerError(JoineryError):
    """5xx: the server's fault, or it is overloaded."""


class UnreadableAnswer(JoineryError):
    """A success (2xx) whose body is not what the service answers, as of a proxy's page for signing in."""

    hint = "Is this the service's address, and does nothing between answer for it?"


class WebhookVerificationError(JoineryError):
    """A webhook that is not ours, too old, or changed on its way: answer 400 and ignore it."""


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
    """What Retry-After says, in seconds from now: a number, or a date (RFC 9110 §10.2.3)."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) <= _MOST_DIGITS else math.inf
    try:
        at = parsedate_to_datetime(text)
        aware = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0.0, (aware - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):  # what the parser raises for what is no date
        return None


def refusal(answer: httpx.Response) -> JoineryError:
    """The error that an answer is. What is no problem document (a proxy's page) keeps its beginning as the detail."""
    problem = object_of(answer) or {}
    location = answer.headers.get("location") if 300 <= answer.status_code < 400 else None
    redirect = REDIRECTED.format(location=location) if location else None
    made = BY_STATUS.get(answer.status_code, ServerError if answer.status_code >= 500 else JoineryError)
    detail = _text(problem.get("detail")) or redirect or _beginning(answer)
    return made(detail, status=answer.status_code, problem=problem, headers=answer.headers)


def unreadable(answer: httpx.Response) -> UnreadableAnswer:
    """The error that a success without the expected body is."""
    detail = UNREADABLE.format(beginning=_beginning(answer))
    return UnreadableAnswer(detail, status=answer.status_code, headers=answer.headers)


def object_of(answer: httpx.Response) -> dict[str, Any] | None:
    """The JSON object that the answer holds, or None when it holds anything else."""
    try:
        found = json.loads(answer.content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _beginning(answer: httpx.Response) -> str:
    return answer.content[:200].decode("utf-8", "replace").strip() or "The answer has no body."
