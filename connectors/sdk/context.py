"""All that a connector may know and reach while it works: its settings, a guarded HTTP client, limits and a clock."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from .tables import Report

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server said of the snapshot last fetched, for a conditional request (RFC 9110 §13)."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a connector may take in. Sizes in bytes, times in seconds.

    `record_bytes` bounds one record of JSON or XML. `cell_chars` and `cell_items` bound one cell, and the host holds
    every connector to them. 65,536 characters are the longest text that a product keeps, and twice what a cell of Excel
    can have; a list or an object may have eight times that in all, and everything inside it counts as an item.
    """

    snapshot_bytes: int = 1024 * MIB
    page_bytes: int = 8 * MIB
    record_bytes: int = 8 * MIB
    unpacked_bytes: int = 512 * MIB
    sheet_cells: int = 4_000_000
    rows: int = 5_000_000
    columns: int = 2_000
    cell_chars: int = 64 * 1024
    cell_items: int = 5_000
    patience_seconds: float = 60.0
    fetch_seconds: float = 3_600.0
    parse_seconds: float = 3_600.0


class HttpResponse(Protocol):
    """An answer whose body is read as it comes; `headers` ignore case; `chunks` are decoded (no gzip left)."""

    @property
    def status(self) -> int:
        """The status, 100 to 599."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names ignore case."""
        ...

    @property
    def final_url(self) -> str:
        """Where redirects led."""
        ...

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """The body, to be read once."""
        ...


class HttpClient(Protocol):
    """The one way out. Addresses are vetted, redirects followed (at most 5), bodies bounded; no cookies are kept.

    A connector sees failures as Unreachable, Refused or BadData; what the host is handed may raise HttpFailure.
    """

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        conditional: Validators | None = None,
        hosts: frozenset[str] | None = None,
        private: frozenset[str] = frozenset(),
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Ask for the URL. `conditional` makes it a conditional request (answer 304); any status is an answer.

        `hosts` names the only hosts (`a.example`, `*.a.example`) that the request and its redirects may reach. `private`
        texts, and in any case the credentials, follow no redirect to another origin.
        """
        ...

    def post(
        self,
        url: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Send the body, for services that sign in or query by POST. Redirects are not followed."""
        ...


@runtime_checkable
class HttpFailure(Protocol):
    """How a guarded client's own exception tells its kind.

    `kind` is one of refused_address, dns, tls, connect, timeout, aborted, too_large, too_slow, redirect, bad_encoding,
    host_busy.
    """

    kind: str


class Context(Protocol):
    """What one fetch or one reading works with."""

    @property
    def config(self) -> Mapping[str, Any]:
        """The source's settings, already valid by the connector's config_schema."""
        ...

    @property
    def credentials(self) -> Mapping[str, Any] | None:
        """Opened credentials, valid by credentials_schema; None when the source has none, and while a snapshot is read."""
        ...

    @property
    def stream(self) -> str:
        """`catalogue` or `stock`."""
        ...

    @property
    def validators(self) -> Validators:
        """What the server said of the snapshot last read."""
        ...

    @property
    def http(self) -> HttpClient:
        """The guarded client."""
        ...

    @property
    def limits(self) -> Limits:
        """How much may be taken in."""
        ...

    @property
    def score_header(self) -> Callable[[Sequence[str]], int]:
        """How many of these cells are known header words: the header row is the one that scores."""
        ...

    def now(self) -> datetime:
        """The time, aware, UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait. Keep it short: above limits.patience_seconds raise RetryLater instead."""
        ...

    def report(self, report: Report) -> None:
        """Tell what could not be kept as it was; reading goes on."""
        ...
