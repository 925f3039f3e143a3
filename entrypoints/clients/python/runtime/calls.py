"""Requests, retry rules and response values, shared by the asyncio and blocking clients."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Protocol, TypedDict, TypeVar
from urllib.parse import quote, urlencode

import httpx

from .errors import ConnectionFailed, JoineryError, object_of, refusal, unreadable
from .tables import IN_PROGRESS, KEPT_STATUSES, LONGEST_PAUSE, RATE_LIMITED, RETRIED_STATUSES

Query = Mapping[str, Any]
T = TypeVar("T")
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


class Page(TypedDict, Generic[T]):
    """One page of up to `limit` items; `next_cursor` leads to the next one."""

    object: str
    data: list[T]
    has_more: bool
    next_cursor: str | None


class FeedPage(TypedDict, Generic[T]):
    """Events, the oldest first; `next_cursor` is the position after them."""

    object: str
    data: list[T]
    next_cursor: str
    caught_up: bool


class CursorStore(Protocol):
    """Storage of a follower's position."""

    def load(self) -> str | None:
        """Return the last saved cursor, or None."""

    def save(self, cursor: str) -> None:
        """Save the cursor durably before returning."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Maximum number of retries (None: unlimited) and total delay in seconds."""

    retries: int | None = 4
    max_total_delay: float = 60.0
    initial_delay: float = 0.5
    max_delay: float = 8.0

    def pause(self, tries: int, waited: float, retry_after: float | None) -> float | None:
        """Return the seconds until the next try, or None for no retry. Exponential backoff with jitter between half and all."""
        step = min(self.max_delay, self.initial_delay * 2.0 ** min(tries, 16))
        # S311: the jitter is not security-relevant
        pause = max(random.uniform(step / 2, step), retry_after or 0.0)  # noqa: S311
        if self.retries is None:
            pause = min(pause, LONGEST_PAUSE)
        elif tries >= self.retries:
            return None
        return None if waited + pause > self.max_total_delay else pause


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `wait` are additional seconds for the response; `file`, of `size` bytes, is sent instead of `content`."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)  # contains the key
    content: bytes | None = None
    file: Path | None = None
    size: int = 0
    wait: float = 0.0

    @property
    def writes(self) -> bool:
        """True if the request may change something."""
        return self.method not in ("GET", "HEAD") and self.headers.get("Service-Dry-Run") is None

    @property
    def repeatable(self) -> bool:
        """True if the request can be sent again without further effect."""
        return self.method != "POST" or "Idempotency-Key" in self.headers


@dataclass(slots=True)
class Attempts:
    """Failed tries of one request."""

    request: Request
    policy: RetryPolicy
    tries: int = 0
    waited: float = 0.0
    unclear: bool = False

    def pause_after(self, outcome: httpx.Response | httpx.RequestError) -> tuple[float, JoineryError]:
        """Return the seconds to wait after an outcome, and the reason. Raises JoineryError if the request must not be retried."""
        if isinstance(outcome, httpx.Response):
            error, cause = refusal(outcome), None
        else:
            address = self.request.url.partition("?")[0]
            error = ConnectionFailed(f"No response from {address}: {type(outcome).__name__}: {outcome}")
            cause = outcome
        self.unclear = self._is_unclear(outcome, error)
        pause = self.policy.pause(self.tries, self.waited, error.retry_after)
        if pause is None or not self._should_retry(outcome, error):
            error.maybe_done = self.unclear
            raise error from cause
        self.waited += pause
        self.tries += 1
        return pause, error

    def _should_retry(self, outcome: httpx.Response | httpx.RequestError, error: JoineryError) -> bool:
        """Return whether a retry is useful and safe: what may have reached the server is retried only if repeatable."""
        if isinstance(outcome, httpx.RequestError):
            return self.request.repeatable or isinstance(outcome, _NOT_SENT)
        status = outcome.status_code
        if status == 429:  # rejected before execution; without a code, by a proxy
            return error.code in (RATE_LIMITED, None)
        return self.request.repeatable and (
            status in RETRIED_STATUSES
            or error.code == IN_PROGRESS
            or (self.request.file is not None and status == 409)  # the server is still processing the broken try
            # a follower only reads, so it retries all server and proxy errors
            or (self.policy.retries is None and (status >= 500 or status == 408))
        )

    def _is_unclear(self, outcome: httpx.Response | httpx.RequestError, error: JoineryError) -> bool:
        """Return whether the change may have been made although the request failed."""
        if not self.request.writes:
            return False
        if isinstance(outcome, httpx.RequestError):
            return self.unclear or not isinstance(outcome, _NOT_SENT)
        if outcome.status_code >= 500 or error.code == IN_PROGRESS:
            return True
        keyed = "Idempotency-Key" in self.request.headers
        return self.unclear and not (keyed and outcome.status_code in KEPT_STATUSES)


def address(base_url: str, path: str, ids: Sequence[str] = (), query: Query | None = None) -> str:
    """Return the URL; each `{}` of the path is the next ID. Raises ValueError for an invalid ID."""
    if any(not id or id.strip(".") == "" for id in ids):
        raise ValueError(f"An ID for {path} is empty.")
    filled = base_url + path.format(*(quote(id, safe="") for id in ids))
    encoded = {name: _parameter_text(value) for name, value in (query or {}).items() if value is not None}
    return f"{filled}?{urlencode(encoded)}" if encoded else filled


def _parameter_text(value: Any) -> str:
    """Return a query parameter as text: lists comma-separated with escaped commas, times in UTC."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone. Add one, for example datetime.now(timezone.utc).")
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(str(one).replace("\\", "\\\\").replace(",", "\\,") for one in value)
    return str(value)


def listed(value: Any) -> Any:
    """Return the value of a list parameter; a single string is a list of one, whose commas are literal."""
    return [value] if isinstance(value, str) else value


def value_of(answer: httpx.Response, needs: Sequence[str] = ()) -> Any:
    """Return the JSON object of a response, or None for a 204 without needed fields. Raises UnreadableAnswer."""
    if answer.status_code == 204 and not needs:
        return None
    found = object_of(answer)
    is_incomplete = found is None or any(found.get(name) is None for name in needs)
    if found is None or is_incomplete or ("data" in needs and not isinstance(found["data"], list)):
        raise unreadable(answer)
    return found
