"""HTTP core of the client. The package's module `core` is this one without asyncio."""

import asyncio
import json
import logging
import os
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import httpx

from .calls import Attempts, Query, Request, RetryPolicy, address, value_of
from .errors import UnreadableAnswer
from .tables import FEED_PAGE_FIELDS

_LONGEST_TIMEOUT = 1e6
"""Seconds; operating systems reject much longer timeouts, so a longer one means no timeout."""
_LOG = logging.getLogger("joinery_client")
_WARN_AFTER = 3
"""Number of tries from which retries are logged as warnings, so that endless ones are visible."""
_CHUNK_SIZE = 1 << 16


class AsyncCore:
    """Base URL, credential and connections of a client. Raises ValueError for invalid settings."""

    def __init__(
        self,
        base_url: str | None,
        key: str | None,
        *,
        version: str,
        agent: str,
        timeout: float = 30.0,
        policy: RetryPolicy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.base_url = (base_url or os.environ.get("JOINERY_URL") or "").strip().rstrip("/")
        secret = (key or os.environ.get("JOINERY_KEY") or "").strip()  # a value from a file may end with a line break
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError(
                "Set the service's URL as base_url= or JOINERY_URL, such as https://… or http://127.0.0.1:8080."
            )
        if not secret:
            raise ValueError("Set an API key as key= or JOINERY_KEY.")
        if "@" in self.base_url:
            raise ValueError("The service's URL contains a user or password. Remove them: only the API key is sent.")
        if not all("!" <= sign <= "~" for sign in secret):
            raise ValueError(
                "The API key contains invalid characters, such as spaces or line breaks. Use it exactly as shown."
            )
        if not timeout > 0:  # nor NaN
            raise ValueError("The timeout must be a number of seconds above 0, or math.inf.")
        self.headers: Mapping[str, str] = {
            "Authorization": f"Bearer {secret}",
            "Service-Version": version,
            "User-Agent": agent,
            "Accept": "application/json",
        }
        self.policy, self._timeout = policy or RetryPolicy(), timeout
        self._http = httpx.AsyncClient(transport=transport, follow_redirects=False)  # the key is for one host

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def request(
        self,
        method: str,
        path: str,
        ids: Sequence[str] = (),
        *,
        query: Query | None = None,
        body: Any = None,
        keyed: bool = False,
        idempotency_key: str | None = None,
        if_match: int | str | None = None,
        dry_run: bool = False,
        explain: bool = False,
    ) -> Request:
        """Prepare one operation."""
        headers = dict(self.headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        if keyed:
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        if if_match is not None:
            headers["If-Match"] = f'"{if_match}"' if isinstance(if_match, int) else if_match
        if dry_run or explain:
            headers["Service-Dry-Run"] = "explain" if explain else "true"
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        wait = float((query or {}).get("wait") or 0)  # the server may delay the response by this time
        return Request(method, address(self.base_url, path, ids, query), headers, content, wait=wait)

    async def call(
        self, method: str, path: str, ids: Sequence[str] = (), *, needs: Sequence[str] = (), **given: Any
    ) -> Any:
        """Execute one operation; return its JSON object with the fields `needs`, or None for an empty response. Raises JoineryError."""
        request = self.request(method, path, ids, **given)
        answer = await self.send(request)
        try:
            return value_of(answer, needs)
        except UnreadableAnswer as error:
            error.maybe_done = request.writes
            raise

    async def follow(self, path: str, query: Query) -> Any:
        """Read a page of the feed, with unlimited retries; the server may delay the response by `wait` seconds."""
        request = self.request("GET", path, query=query)
        policy, tries = replace(self.policy, retries=None, max_delay=30.0, max_total_delay=float("inf")), 0
        while True:
            answer = await self.send(request, policy)
            try:
                return value_of(answer, FEED_PAGE_FIELDS)
            except UnreadableAnswer as error:
                tries += 1
                await self._pause(policy.pause(tries, 0.0, error.retry_after) or 0.0, error, tries)

    async def put(self, url: str, headers: Mapping[str, str], file: Path, size: int) -> httpx.Response:
        """Send a file of `size` bytes to its upload URL, without the credential. Raises OSError if its size has changed."""
        return await self.send(Request("PUT", url, {**headers, "Content-Length": str(size)}, file=file, size=size))

    async def send(self, request: Request, policy: RetryPolicy | None = None) -> httpx.Response:
        """Send a request until it has a final response. Raises JoineryError."""
        attempts = Attempts(request, policy or self.policy)
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = await self._exchange(request)
            except (httpx.UnsupportedProtocol, httpx.LocalProtocolError):
                raise  # an invalid request, which a retry cannot fix
            except httpx.RequestError as error:
                outcome = error
            if isinstance(outcome, httpx.Response) and outcome.status_code < 300:
                return outcome
            pause, reason = attempts.pause_after(outcome)
            await self._pause(pause, reason, attempts.tries)

    @staticmethod
    async def _pause(seconds: float, reason: Exception, tries: int) -> None:
        _LOG.log(logging.WARNING if tries >= _WARN_AFTER else logging.INFO, "%s; retrying in %.1f s", reason, seconds)
        await asyncio.sleep(seconds)

    async def _exchange(self, request: Request) -> httpx.Response:
        forever = self._timeout > _LONGEST_TIMEOUT
        timeout = httpx.Timeout(None if forever else self._timeout, read=None if forever else self._timeout + request.wait)  # fmt: skip
        file = await asyncio.to_thread(request.file.open, "rb") if request.file else None
        try:
            content = _read_chunks(file, request) if file else request.content
            headers = dict(request.headers)
            return await self._http.request(
                request.method, request.url, headers=headers, content=content, timeout=timeout
            )
        finally:
            if file:
                file.close()


async def _read_chunks(file: IO[bytes], request: Request) -> AsyncIterator[bytes]:
    """Yield the chunks of the request's file. Raises OSError if its size is not as announced."""
    remaining, chunk = request.size, b"-"
    while chunk:
        chunk = await asyncio.to_thread(file.read, _CHUNK_SIZE)
        remaining -= len(chunk)
        if remaining < 0 or (remaining and not chunk):
            raise OSError(f"{request.file} changed its size during the upload. Upload it again when it is complete.")
        yield chunk


class AsyncClient:
    """Client of the API, with one attribute per area. Close it, or use it with `async with`."""

    _version = ""
    _agent = ""

    def __init__(
        self,
        base_url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 4,
        version: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Create a client; `base_url` and `key` default to JOINERY_URL and JOINERY_KEY, `timeout` is in seconds (inf: none).

        `retries` is the maximum number of retries per call; `version` another dated API version than that of this package;
        `transport` another httpx transport. Raises ValueError if URL or key are missing.
        """
        self._core = AsyncCore(
            base_url,
            key,
            version=version or self._version,
            agent=self._agent,
            timeout=timeout,
            policy=RetryPolicy(retries=retries),
            transport=transport,
        )
        self._mount(self._core)

    def _mount(self, core: AsyncCore) -> None:
        """Create the groups."""

    async def close(self) -> None:
        """Close the connections."""
        await self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
