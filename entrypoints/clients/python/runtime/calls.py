"""Requests, when they are repeated, and the values of their answers: all that is the same with and without asyncio."""

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
    """One page: up to `limit` items; `next_cursor` goes on behind it."""

    object: str
    data: list[T]
    has_more: bool
    next_cursor: str | None


class FeedPage(TypedDict, Generic[T]):
    """Some events, the oldest first. `next_cursor` is the place behind them."""

    object: str
    data: list[T]
    next_cursor: str
    caught_up: bool


class CursorStore(Protocol):
    """Where a follower keeps its place."""

    def load(self) -> str | None:
        """The cursor that was saved last, or None."""

    def save(self, cursor: str) -> None:
        """Keep the cursor; once this returns, a crash does not lose it."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most so many repetitions (None: any number), which wait no longer than `max_total_delay` seconds in all."""

    retries: int | None = 4
    max_total_delay: float = 60.0
    initial_delay: float = 0.5
    max_delay: float = 8.0

    def pause(self, tries: int, waited: float, retry_after: float | None) -> float | None:
        """Seconds until the next try, or None for no further one. Doubles each time; between half and all of that is drawn."""
        step = min(self.max_delay, self.initial_delay * 2.0 ** min(tries, 16))
        # S311: it spreads clients, and hides nothing
        pause = max(random.uniform(step / 2, step), retry_after or 0.0)  # noqa: S311
        if self.retries is None:
            pause = min(pause, LONGEST_PAUSE)
        elif tries >= self.retries:
            return None
        return None if waited + pause > self.max_total_delay else pause


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `wait` is how many seconds longer than usual the answer may take; `file`, of `size` bytes, is sent in place of `content`."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)  # the key is in it
    content: bytes | None = None
    file: Path | None = None
    size: int = 0
    wait: float = 0.0

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        return self.method not in ("GET", "HEAD") and self.headers.get("Service-Dry-Run") is None

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice does no more than sending it once."""
        return self.method != "POST" or "Idempotency-Key" in self.headers


@dataclass(slots=True)
class Attempts:
    """The failed tries of one request."""

    request: Request
    policy: RetryPolicy
    tries: int = 0
    waited: float = 0.0
    unclear: bool = False

    def pause_after(self, outcome: httpx.Response | httpx.RequestError) -> tuple[float, JoineryError]:
        """Seconds to wait after this outcome, and the reason. Raises JoineryError when the request is not to be repeated."""
        if isinstance(outcome, httpx.Response):
            error, cause = refusal(outcome), None
        else:
            address = self.request.url.partition("?")[0]
            error = ConnectionFailed(f"No answer from {address}: {type(outcome).__name__}: {outcome}")
            cause = outcome
        self.unclear = self._is_unclear(outcome, error)
        pause = self.policy.pause(self.tries, self.waited, error.retry_after)
        if pause is None or not self._is_passing(outcome, error):
            error.maybe_done = self.unclear
            raise error from cause
        self.waited += pause
        self.tries += 1
        return pause, error

    def _is_passing(self, outcome: httpx.Response | httpx.RequestError, error: JoineryError) -> bool:
        """Whether repeating can help and does no harm. What may have reached the server is only repeated when that is safe."""
        if isinstance(outcome, httpx.RequestError):
            return self.request.repeatable or isinstance(outcome, _NOT_SENT)
        status = outcome.status_code
        if status == 429:  # refused before anything was done; without a code it is a proxy's
            return error.code in (RATE_LIMITED, None)
        return self.request.repeatable and (
            status in RETRIED_STATUSES
            or error.code == IN_PROGRESS
            or (self.request.file is not None and status == 409)  # the server still has the broken try in hand
            # a follower only reads, and outlives whatever a proxy says of an outage
            or (self.policy.retries is None and (status >= 500 or status == 408))
        )

    def _is_unclear(self, outcome: httpx.Response | httpx.RequestError, error: JoineryError) -> bool:
        """Whether the change may have been made, though this is how it ended."""
        if not self.request.writes:
            return False
        if isinstance(outcome, httpx.RequestError):
            return self.unclear or not isinstance(outcome, _NOT_SENT)
        if outcome.status_code >= 500 or error.code == IN_PROGRESS:
            return True
        keyed = "Idempotency-Key" in self.request.headers
        return self.unclear and not (keyed and outcome.status_code in KEPT_STATUSES)


def address(base_url: str, path: str, ids: Sequence[str] = (), query: Query | None = None) -> str:
    """The address; every `{}` of the path is the next id. Raises ValueError for an id that is not valid."""
    if any(not id or id.strip(".") == "" for id in ids):
        raise ValueError(f"An id for {path} is empty.")
    filled = base_url + path.format(*(quote(id, safe="") for id in ids))
    written = {name: _written(value) for name, value in (query or {}).items() if value is not None}
    return f"{filled}?{urlencode(written)}" if written else filled


def _written(value: Any) -> str:
    """A query parameter's text: lists with commas, those inside a value escaped; times in UTC."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone: give it one, as in datetime.now(timezone.utc).")
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(str(one).replace("\\", "\\\\").replace(",", "\\,") for one in value)
    return str(value)


def listed(value: Any) -> Any:
    """A list for a parameter that takes many: a single text is a list of one, whose commas are its own."""
    return [value] if isinstance(value, str) else value


def value_of(answer: httpx.Response, needs: Sequence[str] = ()) -> Any:
    """The JSON object of an answer, or None for a 204 that needs no more. Raises UnreadableAnswer."""
    if answer.status_code == 204 and not needs:
        return None
    found = object_of(answer)
    lacks = found is None or any(found.get(name) is None for name in needs)
    if found is None or lacks or ("data" in needs and not isinstance(found["data"], list)):
        raise unreadable(answer)
    return found
