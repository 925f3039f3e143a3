"""Requests, retry rules and response values, shared by the asyncio and blocking clients."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Protocol, TypedDict, TypeVar
from urllib.parse import quote, urlencode

import httpx

from .errors import ConnectionFailed, JoineryError, build_response_error, build_unexpected_response_error, parse_object
from .tables import IN_PROGRESS, KEPT_STATUSES, MAX_FEED_RETRY_DELAY, RATE_LIMITED, RETRIED_STATUSES

Query = Mapping[str, Any]
T = TypeVar("T")
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


class ListPage(TypedDict, Generic[T]):
    """Page of a list, with up to `limit` items in `data`. `next_cursor` is the cursor of the next page."""

    object: str
    data: list[T]
    has_more: bool
    next_cursor: str | None


class FeedPage(TypedDict, Generic[T]):
    """Page of the change feed, with events in `data`, oldest first.

    `next_cursor` is the position after the page. `caught_up` is true if no events followed the page when it was read.
    """

    object: str
    data: list[T]
    next_cursor: str
    caught_up: bool


class CursorStore(Protocol):
    """Storage of the position up to which a program has read the change feed."""

    def load(self) -> str | None:
        """Return the last saved cursor, or None."""

    def save(self, cursor: str) -> None:
        """Save the cursor durably before returning."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Rules for the retries of failed requests.

    Attributes:
        retries: Maximum number of retries; None for no limit.
        max_total_delay: Maximum sum of the delays of one request, in seconds.
        initial_delay: Delay before the first retry, in seconds. The delay doubles with each further retry.
        max_delay: Maximum delay before a retry, in seconds.
    """

    retries: int | None = 4
    max_total_delay: float = 60.0
    initial_delay: float = 0.5
    max_delay: float = 8.0

    def compute_delay(self, failed_tries: int, total_delay: float, retry_after: float | None) -> float | None:
        """Return the delay before the next retry in seconds, or None if the request must not be retried.

        The delay doubles with each retry, and is multiplied by a random factor from 0.5 to 1.

        Args:
            failed_tries: The number of failed tries.
            total_delay: The sum of all delays so far, in seconds.
            retry_after: The server's Retry-After in seconds.
        """
        step = min(self.max_delay, self.initial_delay * 2.0 ** min(failed_tries, 16))
        # S311: the jitter is not security-relevant
        pause = max(random.uniform(step / 2, step), retry_after or 0.0)  # noqa: S311
        if self.retries is None:
            pause = min(pause, MAX_FEED_RETRY_DELAY)
        elif failed_tries >= self.retries:
            return None
        return None if total_delay + pause > self.max_total_delay else pause


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """HTTP request of the client.

    Attributes:
        method: The HTTP method.
        url: The URL.
        headers: The headers, including the credential.
        content: The request body.
        file: File that is sent instead of `content`.
        size: Size of the file in bytes.
        wait: Seconds by which the server may delay the response, which are added to the timeout.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)  # contains the key
    content: bytes | None = None
    file: Path | None = None
    size: int = 0
    wait: float = 0.0

    @property
    def is_write(self) -> bool:
        """True if the request may change data."""
        return self.method not in ("GET", "HEAD") and self.headers.get("Service-Dry-Run") is None

    @property
    def is_repeatable(self) -> bool:
        """True if sending the request again has no further effect."""
        return self.method != "POST" or "Idempotency-Key" in self.headers


@dataclass(slots=True)
class RetryState:
    """Number and delays of the retries of one request.

    Attributes:
        request: The request.
        policy: The rules for retries.
        failed_tries: The number of failed tries.
        total_delay: The sum of all delays so far, in seconds.
        may_have_changed_data: Whether a failed try may have changed data.
    """

    request: ApiRequest
    policy: RetryPolicy
    failed_tries: int = 0
    total_delay: float = 0.0
    may_have_changed_data: bool = False

    def record_failure(self, outcome: httpx.Response | httpx.RequestError) -> tuple[float, JoineryError]:
        """Record a failed try, and return the delay before the next try in seconds, and the error.

        Raises JoineryError if the request must not be retried.
        """
        if isinstance(outcome, httpx.Response):
            error, cause = build_response_error(outcome), None
        else:
            address = self.request.url.partition("?")[0]
            error = ConnectionFailed(f"No response from {address}: {type(outcome).__name__}: {outcome}")
            cause = outcome
        self.may_have_changed_data = self._may_have_changed_data(outcome, error)
        pause = self.policy.compute_delay(self.failed_tries, self.total_delay, error.retry_after)
        if pause is None or not self._should_retry(outcome, error):
            error.maybe_done = self.may_have_changed_data
            raise error from cause
        self.total_delay += pause
        self.failed_tries += 1
        return pause, error

    def _should_retry(self, outcome: httpx.Response | httpx.RequestError, error: JoineryError) -> bool:
        """Return whether a retry is useful and cannot execute the operation twice."""
        if isinstance(outcome, httpx.RequestError):
            return self.request.is_repeatable or isinstance(outcome, _NOT_SENT)
        status = outcome.status_code
        if status == 429:  # rejected before execution; without a code, by a proxy
            return error.code in (RATE_LIMITED, None)
        return self.request.is_repeatable and (
            status in RETRIED_STATUSES
            or error.code == IN_PROGRESS
            or (self.request.file is not None and status == 409)  # the server is still processing the broken try
            # a follower only reads, so it retries all server and proxy errors
            or (self.policy.retries is None and (status >= 500 or status == 408))
        )

    def _may_have_changed_data(self, outcome: httpx.Response | httpx.RequestError, error: JoineryError) -> bool:
        """Return whether the failed try, or an earlier one, may have changed data."""
        if not self.request.is_write:
            return False
        if isinstance(outcome, httpx.RequestError):
            return self.may_have_changed_data or not isinstance(outcome, _NOT_SENT)
        if outcome.status_code >= 500 or error.code == IN_PROGRESS:
            return True
        keyed = "Idempotency-Key" in self.request.headers
        return self.may_have_changed_data and not (keyed and outcome.status_code in KEPT_STATUSES)


def build_url(base_url: str, path: str, ids: Sequence[str] = (), query: Query | None = None) -> str:
    """Return the URL of a request, with the IDs instead of the `{}` in the path. Raises ValueError for an invalid ID."""
    if any(not id or id.strip(".") == "" for id in ids):
        raise ValueError(f"An ID for {path} is empty.")
    filled = base_url + path.format(*(quote(id, safe="") for id in ids))
    encoded = {name: _format_parameter(value) for name, value in (query or {}).items() if value is not None}
    return f"{filled}?{urlencode(encoded)}" if encoded else filled


def _format_parameter(value: Any) -> str:
    """Return the text of a query parameter's value: items of a list separated by commas, times in UTC."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone. Add one, for example datetime.now(timezone.utc).")
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(str(one).replace("\\", "\\\\").replace(",", "\\,") for one in value)
    return str(value)


def as_list(value: Any) -> Any:
    """Return the value of a list parameter as a list: a single string becomes a list with this item."""
    return [value] if isinstance(value, str) else value


def parse_value(response: httpx.Response, required_fields: Sequence[str] = ()) -> Any:
    """Return the JSON object of a response; None for status 204 if no fields are required.

    Raises UnexpectedResponse if the body is not a JSON object with the required fields `required_fields`.
    """
    if response.status_code == 204 and not required_fields:
        return None
    value = parse_object(response)
    is_incomplete = value is None or any(value.get(name) is None for name in required_fields)
    if value is None or is_incomplete or ("data" in required_fields and not isinstance(value["data"], list)):
        raise build_unexpected_response_error(response)
    return value
