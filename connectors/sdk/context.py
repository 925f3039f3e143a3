"""Environment of a connector at work: settings, a guarded HTTP client, limits and a clock."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from .tables import Report

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Validators:
    """Validators of the last snapshot, for a conditional request (RFC 9110 §13)."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds of a connector's input, sizes in bytes and times in seconds.

    `record_bytes` bounds one record of JSON or XML. `cell_chars` and `cell_items` bound one cell, and the host enforces
    them. 65,536 characters are the longest text that a product keeps, and twice what an Excel cell can hold. A list or
    an object may have eight times that in all; every value inside counts as an item.
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
    """HTTP response with a streamed body; names in `headers` ignore case, `chunks` are decoded (no gzip left)."""

    @property
    def status(self) -> int:
        """HTTP status, 100 to 599."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers; names ignore case."""
        ...

    @property
    def final_url(self) -> str:
        """URL after all redirects."""
        ...

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """Body, readable once."""
        ...


class HttpClient(Protocol):
    """Guarded client, a connector's only access to the network.

    Addresses are vetted, redirects followed (at most 5), bodies bounded and no cookies kept. A connector sees failures
    as Unreachable, Refused or BadData; the client that the host receives may raise HttpFailure.
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
        """Send a GET request; a response of any status is returned.

        `conditional` makes the request conditional (response 304). `hosts` are the only hosts (`a.example`,
        `*.a.example`) that the request and its redirects may reach. `private` texts are, like the credentials, never
        sent on a redirect to another origin.
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
        """Send a POST request, for services that sign in or query by POST. Redirects are not followed."""
        ...


@runtime_checkable
class HttpFailure(Protocol):
    """Exception of a guarded client, with the kind of the failure.

    `kind` is one of refused_address, dns, tls, connect, timeout, aborted, too_large, too_slow, redirect, bad_encoding,
    host_busy.
    """

    kind: str


class Context(Protocol):
    """Environment of one fetch or one parse."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Source's settings, valid by the connector's config_schema."""
        ...

    @property
    def credentials(self) -> Mapping[str, Any] | None:
        """Decrypted credentials, valid by credentials_schema; None if the source has none, and while a snapshot is parsed."""
        ...

    @property
    def stream(self) -> str:
        """Stream of the run, `catalogue` or `stock`."""
        ...

    @property
    def validators(self) -> Validators:
        """Validators of the last snapshot."""
        ...

    @property
    def http(self) -> HttpClient:
        """Guarded HTTP client."""
        ...

    @property
    def limits(self) -> Limits:
        """Upper bounds of the input."""
        ...

    @property
    def score_header(self) -> Callable[[Sequence[str]], int]:
        """Function that counts the known header words among cells; the row with the highest count is the header row."""
        ...

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for some seconds. Above limits.patience_seconds, raise RetryLater instead."""
        ...

    def report(self, report: Report) -> None:
        """Report data that could not be kept as it was; parsing continues."""
        ...
