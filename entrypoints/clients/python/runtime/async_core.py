"""HTTP connection of the asynchronous client. The module `core` is generated from this one, without asyncio."""

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

from .calls import ApiRequest, Query, RetryPolicy, RetryState, build_url, parse_value
from .errors import UnexpectedResponse
from .tables import FEED_PAGE_FIELDS

_LONGEST_TIMEOUT = 1e6
"""Longest timeout in seconds. A longer one means no timeout, because operating systems reject it."""
_LOG = logging.getLogger("joinery_client")
_WARN_AFTER = 3
"""Number of failed tries after which further retries are logged as warnings instead of information."""
_CHUNK_SIZE = 1 << 16


class AsyncCore:
    """HTTP connections, base URL, credential and retry rules of a client. Raises ValueError for invalid arguments."""

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

    def build_request(
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
    ) -> ApiRequest:
        """Return the request for one operation.

        Args:
            method: The HTTP method.
            path: The path, with `{}` for each of `ids`.
            ids: The values of the path parameters.
            query: The query parameters.
            body: The request body, as a JSON value.
            keyed: Whether the request has an Idempotency-Key.
            idempotency_key: The value of the Idempotency-Key; None for a random one. Ignored unless `keyed` is true.
            if_match: The expected version, or an ETag.
            dry_run: Whether the operation is executed without lasting effects and returns its usual response.
            explain: Whether the operation is executed without lasting effects and returns a preview. Overrides `dry_run`.
        """
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
        return ApiRequest(method, build_url(self.base_url, path, ids, query), headers, content, wait=wait)

    async def call(
        self, method: str, path: str, ids: Sequence[str] = (), *, required_fields: Sequence[str] = (), **options: Any
    ) -> Any:
        """Execute one operation, and return the JSON object of the response; None for an empty response.

        `required_fields` are the fields that the object must have, `options` are arguments of `build_request`.
        Raises JoineryError.
        """
        request = self.build_request(method, path, ids, **options)
        response = await self.send(request)
        try:
            return parse_value(response, required_fields)
        except UnexpectedResponse as error:
            error.maybe_done = request.is_write
            raise

    async def read_feed_page(self, path: str, query: Query) -> Any:
        """Read a page of the change feed, with an unlimited number of retries."""
        request = self.build_request("GET", path, query=query)
        policy, failed_tries = replace(self.policy, retries=None, max_delay=30.0, max_total_delay=float("inf")), 0
        while True:
            response = await self.send(request, policy)
            try:
                return parse_value(response, FEED_PAGE_FIELDS)
            except UnexpectedResponse as error:
                failed_tries += 1
                delay = policy.compute_delay(failed_tries, 0.0, error.retry_after) or 0.0
                await self._pause(delay, error, failed_tries)

    async def put(self, url: str, headers: Mapping[str, str], file: Path, size: int) -> httpx.Response:
        """Send a file to an upload URL, without the credential. Raises OSError unless the file has `size` bytes."""
        return await self.send(ApiRequest("PUT", url, {**headers, "Content-Length": str(size)}, file=file, size=size))

    async def send(self, request: ApiRequest, policy: RetryPolicy | None = None) -> httpx.Response:
        """Send a request, retry it after transient errors, and return the successful response. Raises JoineryError."""
        retry_state = RetryState(request, policy or self.policy)
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = await self._send_once(request)
            except (httpx.UnsupportedProtocol, httpx.LocalProtocolError):
                raise  # an invalid request, which a retry cannot fix
            except httpx.RequestError as error:
                outcome = error
            if isinstance(outcome, httpx.Response) and outcome.status_code < 300:
                return outcome
            delay, reason = retry_state.record_failure(outcome)
            await self._pause(delay, reason, retry_state.failed_tries)

    @staticmethod
    async def _pause(seconds: float, reason: Exception, failed_tries: int) -> None:
        _LOG.log(
            logging.WARNING if failed_tries >= _WARN_AFTER else logging.INFO, "%s; retrying in %.1f s", reason, seconds
        )
        await asyncio.sleep(seconds)

    async def _send_once(self, request: ApiRequest) -> httpx.Response:
        is_unlimited = self._timeout > _LONGEST_TIMEOUT
        timeout = httpx.Timeout(None if is_unlimited else self._timeout, read=None if is_unlimited else self._timeout + request.wait)  # fmt: skip
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


async def _read_chunks(file: IO[bytes], request: ApiRequest) -> AsyncIterator[bytes]:
    """Yield the request's file in chunks. Raises OSError if the file no longer has the size that the request states."""
    remaining, chunk = request.size, b"-"
    while chunk:
        chunk = await asyncio.to_thread(file.read, _CHUNK_SIZE)
        remaining -= len(chunk)
        if remaining < 0 or (remaining and not chunk):
            raise OSError(
                f"{request.file} changed its size during the upload. Wait until the file is complete, then upload it again."
            )
        yield chunk


class AsyncClient:
    """Client of the API, with one attribute per group of operations. Close it, or use it with `async with`."""

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

        `retries` is the maximum number of retries per call, `version` an API version other than that of this package, and
        `transport` an httpx transport other than the default. Raises ValueError if the URL or the key is missing.
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
        self._create_groups(self._core)

    def _create_groups(self, core: AsyncCore) -> None:
        """Create the groups of methods as attributes. Generated subclasses implement this."""

    async def close(self) -> None:
        """Close the connections."""
        await self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
