"""Requests that are retried and requests that are not, for the clients of both languages."""

from dataclasses import dataclass
from typing import Any, Final

CUT = {"sent": True}
"""No response, although the request may have reached the server."""
NEVER_SENT = {"sent": False}
"""No response, because no connection was established."""
KEYED = {"Idempotency-Key": "k"}
GET: Final[tuple[str, dict[str, str]]] = ("GET", {})
POST: Final[tuple[str, dict[str, str]]] = ("POST", KEYED)
KEYLESS: Final[tuple[str, dict[str, str]]] = ("POST", {})
PATCH = ("PATCH", {"If-Match": '"1"'})
DELETE: Final[tuple[str, dict[str, str]]] = ("DELETE", {})
PUT: Final[tuple[str, dict[str, str]]] = ("PUT", {})
SAFE = (GET, POST, PATCH, DELETE, PUT)


@dataclass(frozen=True)
class RetryCase:
    """Request, outcome of its first attempt, and whether it is retried."""

    method: str
    headers: dict[str, str]
    outcome: dict[str, Any]
    is_retried: bool

    def __str__(self) -> str:
        keyed = " with a key" if "Idempotency-Key" in self.headers else ""
        return f"{self.method}{keyed}: {self.outcome}"


def build_outcome(status: int, code: str | None = None) -> dict[str, Any]:
    """Return the outcome of a response; without a code, a proxy sent the response."""
    return {"status": status, "code": code}


def _build_cases() -> list[RetryCase]:
    passing = [build_outcome(status) for status in (500, 502, 503, 504)]
    passing += [
        build_outcome(500, "internal_error"),
        build_outcome(503, "overloaded"),
        build_outcome(503, "unavailable"),
    ]
    passing += [build_outcome(409, "idempotency_request_in_progress"), CUT]
    harmless = [NEVER_SENT, build_outcome(429), build_outcome(429, "rate_limited")]
    final = [build_outcome(status) for status in (301, 400, 401, 403, 404, 410, 412, 413, 422, 428, 501, 505)]
    final += [
        build_outcome(429, "quota_exceeded"),
        build_outcome(429, "ai_budget_reached"),
        build_outcome(409, "conflict"),
    ]
    cases = [RetryCase(*request, outcome, True) for request in SAFE for outcome in [*passing, *harmless]]
    cases += [RetryCase(*request, outcome, False) for request in [*SAFE, KEYLESS] for outcome in final]
    cases += [RetryCase(*KEYLESS, outcome, False) for outcome in passing]
    return cases + [RetryCase(*KEYLESS, outcome, True) for outcome in harmless]


CASES = _build_cases()
