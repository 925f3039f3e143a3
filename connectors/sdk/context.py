"""Environment of a connector during a fetch or parse: settings, an HTTP client, limits and a clock."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from .tables import Report

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Validators:
    """ETag and Last-Modified of the last snapshot, for a conditional request (RFC 9110 §13)."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits of what a connector reads, waits and returns.

    Attributes:
        snapshot_bytes: Size of a snapshot.
        page_bytes: Size of one response of a source that is read page by page.
        record_bytes: Size of one record of JSON or XML.
        unpacked_bytes: Size of the contents of a compressed file.
        sheet_cells: Number of cells of a worksheet.
        rows: Number of rows of a snapshot.
        columns: Number of columns of a table.
        cell_chars: Characters of a text in a cell; a list or object may have eight times as many in total.
        cell_items: Number of values in a list or object in a cell, at all levels.
        max_wait_seconds: Longest wait during a run, such as for a rate limit; for a longer wait, the run is postponed.
        fetch_seconds: Duration of one fetch.
        parse_seconds: Duration of the parsing of one snapshot.
    """

    snapshot_bytes: int = 1024 * MIB
    page_bytes: int = 8 * MIB
    record_bytes: int = 8 * MIB
    unpacked_bytes: int = 512 * MIB
    sheet_cells: int = 4_000_000
    rows: int = 5_000_000
    columns: int = 2_000
    cell_chars: int = 64 * 1024  # the longest text that a product keeps, and twice what an Excel cell can hold
    cell_items: int = 5_000
    max_wait_seconds: float = 60.0
    fetch_seconds: float = 3_600.0
    parse_seconds: float = 3_600.0


class HttpResponse(Protocol):
    """HTTP response with a streamed body."""

    @property
    def status(self) -> int:
        """HTTP status, 100 to 599."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers by name, in which the case of names does not matter."""
        ...

    @property
    def final_url(self) -> str:
        """URL after all redirects."""
        ...

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """Chunks of the decompressed body, which can be iterated once."""
        ...


class HttpClient(Protocol):
    """HTTP client with protection against hostile servers, a connector's only access to the network.

    Addresses are vetted, at most 5 redirects are followed, bodies are limited, and no cookies are stored. In a
    connector, failures are raised as Unreachable, Refused or BadData; the client that the plugin host uses may raise
    HttpFailure.
    """

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        conditional: Validators | None = None,
        hosts: frozenset[str] | None = None,
        secrets: frozenset[str] = frozenset(),
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Send a GET request and yield the response, whatever its status.

        Args:
            url: URL to request.
            headers: Additional request headers.
            conditional: Validators that make the request conditional, so that the source can respond with status 304.
            hosts: The only hosts (`a.example`, `*.a.example`) to which the request and its redirects may be sent.
            secrets: Secrets, such as a token in the URL, that are not sent to another origin after a redirect. The
                credentials of the source are always protected in this way.
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
        """Send a POST request, for services that require POST to sign in or query, and yield the response.

        Redirects are not followed. `headers` and `hosts` have the same meaning as in `get`.
        """
        ...


@runtime_checkable
class HttpFailure(Protocol):
    """Failure of a request, raised by the HTTP client of the plugin host.

    `kind` is one of refused_address, dns, tls, connect, timeout, aborted, too_large, too_slow, redirect, bad_encoding,
    host_busy.
    """

    kind: str


class Context(Protocol):
    """Environment of a connector during one fetch or the parsing of one snapshot."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Settings of the source, which conform to the connector's config_schema."""
        ...

    @property
    def credentials(self) -> Mapping[str, Any] | None:
        """Decrypted credentials, which conform to credentials_schema; None without credentials and during parsing."""
        ...

    @property
    def stream(self) -> str:
        """Stream of the run, `catalogue` or `stock`."""
        ...

    @property
    def validators(self) -> Validators:
        """ETag and Last-Modified of the last snapshot, for conditional requests."""
        ...

    @property
    def http(self) -> HttpClient:
        """HTTP client for all requests of the connector."""
        ...

    @property
    def limits(self) -> Limits:
        """Upper limits of what the connector reads, waits and returns."""
        ...

    @property
    def score_header(self) -> Callable[[Sequence[str]], int]:
        """Function that counts the words of known headers in a row's cells; the header row has the highest count."""
        ...

    def now(self) -> datetime:
        """Return the current time in UTC, with its time zone."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait. Raises RetryLater at once if `seconds` is more than `limits.max_wait_seconds`."""
        ...

    def report(self, report: Report) -> None:
        """Record a report about data that could not be used unchanged. The parsing continues."""
        ...
