"""What is sent again and what is not: one table, which the clients of both languages are held to."""

from dataclasses import dataclass
from typing import Any, Final

CUT = {"sent": True}
"""No answer, after the request may have reached the server."""
NEVER_SENT = {"sent": False}
"""No answer, since there was no connection."""
KEYED = {"Idempotency-Key": "k"}
GET: Final[tuple[str, dict[str, str]]] = ("GET", {})
POST: Final[tuple[str, dict[str, str]]] = ("POST", KEYED)
KEYLESS: Final[tuple[str, dict[str, str]]] = ("POST", {})
PATCH = ("PATCH", {"If-Match": '"1"'})
DELETE: Final[tuple[str, dict[str, str]]] = ("DELETE", {})
PUT: Final[tuple[str, dict[str, str]]] = ("PUT", {})
SAFE = (GET, POST, PATCH, DELETE, PUT)


@dataclass(frozen=True)
class Case:
    """A request, what came of its first try, and whether there is a second one."""

    method: str
    headers: dict[str, str]
    outcome: dict[str, Any]
    again: bool

    def __str__(self) -> str:
        keyed = " with a key" if "Idempotency-Key" in self.headers else ""
        return f"{self.method}{keyed}: {self.outcome}"


def answer(status: int, code: str | None = None) -> dict[str, Any]:
    """An answer; without a code it is a proxy's."""
    return {"status": status, "code": code}


def _cases() -> list[Case]:
    passing = [answer(status) for status in (500, 502, 503, 504)]
    passing += [answer(500, "internal_error"), answer(503, "overloaded"), answer(503, "unavailable")]
    passing += [answer(409, "idempotency_request_in_progress"), CUT]
    harmless = [NEVER_SENT, answer(429), answer(429, "rate_limited")]
    final = [answer(status) for status in (301, 400, 401, 403, 404, 410, 412, 413, 422, 428, 501, 505)]
    final += [answer(429, "quota_exceeded"), answer(429, "ai_budget_reached"), answer(409, "conflict")]
    made = [Case(*request, outcome, True) for request in SAFE for outcome in [*passing, *harmless]]
    made += [Case(*request, outcome, False) for request in [*SAFE, KEYLESS] for outcome in final]
    made += [Case(*KEYLESS, outcome, False) for outcome in passing]
    return made + [Case(*KEYLESS, outcome, True) for outcome in harmless]


CASES = _cases()
