"""Sends the requests of a client. The module `core` of the package is made of this one, without asyncio."""

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
"""Seconds; systems refuse to wait for much longer, and a longer one means for ever."""
_LOG = logging.getLogger("joinery_client")
_WARNED = 3
"""From so many tries on it is a warning that a call is repeated: a follower would else be silent for ever."""
_PIECE = 1 << 16


class AsyncCore:
    """The service's address, the credential and the connections of a client. Raises ValueError for what is not valid."""

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
        secret = (key or os.environ.get("JOINERY_KEY") or "").strip()  # files end with a line break
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError(
                "Say where the service is, as base_url= or in JOINERY_URL: https://… or http://127.0.0.1:8080"
            )
        if not secret:
            raise ValueError("Give an API key as key= or in JOINERY_KEY.")
        if "@" in self.base_url:
            raise ValueError(
                "The service's address names a user or a password. Leave them out: the key is all that is sent."
            )
        if not all("!" <= sign <= "~" for sign in secret):
            raise ValueError(
                "The API key has blanks, line breaks or letters in it that no key has. Give it as it was shown."
            )
        if not timeout > 0:  # nor NaN
            raise ValueError("The timeout is a number of seconds above 0, or math.inf.")
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
        wait = float((query or {}).get("wait") or 0)  # the server may hold the request so long
        return Request(method, address(self.base_url, path, ids, query), headers, content, wait=wait)

    async def call(
        self, method: str, path: str, ids: Sequence[str] = (), *, needs: Sequence[str] = (), **given: Any
    ) -> Any:
        """Carry out one operation: its answer's JSON object, which has what it `needs`, or None where it has none. Raises JoineryError."""
        request = self.request(method, path, ids, **given)
        answer = await self.send(request)
        try:
            return value_of(answer, needs)
        except UnreadableAnswer as error:
            error.maybe_done = request.writes
            raise

    async def follow(self, path: str, query: Query) -> Any:
        """Read a page of the feed, however long that takes; the server may hold the request for `wait` seconds."""
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
        """Send a file of `size` bytes to an address of its own, without our credential. Raises OSError when it has changed."""
        return await self.send(Request("PUT", url, {**headers, "Content-Length": str(size)}, file=file, size=size))

    async def send(self, request: Request, policy: RetryPolicy | None = None) -> httpx.Response:
        """Send it until there is an answer that counts. Raises JoineryError."""
        attempts = Attempts(request, policy or self.policy)
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = await self._exchange(request)
            except (httpx.UnsupportedProtocol, httpx.LocalProtocolError):
                raise  # a fault in the request itself, which no repetition mends
            except httpx.RequestError as error:
                outcome = error
            if isinstance(outcome, httpx.Response) and outcome.status_code < 300:
                return outcome
            pause, reason = attempts.pause_after(outcome)
            await self._pause(pause, reason, attempts.tries)

    @staticmethod
    async def _pause(seconds: float, reason: Exception, tries: int) -> None:
        _LOG.log(logging.WARNING if tries >= _WARNED else logging.INFO, "%s; again in %.1f s", reason, seconds)
        await asyncio.sleep(seconds)

    async def _exchange(self, request: Request) -> httpx.Response:
        forever = self._timeout > _LONGEST_TIMEOUT
        patience = httpx.Timeout(None if forever else self._timeout, read=None if forever else self._timeout + request.wait)  # fmt: skip
        file = await asyncio.to_thread(request.file.open, "rb") if request.file else None
        try:
            content = _pieces(file, request) if file else request.content
            headers = dict(request.headers)
            return await self._http.request(
                request.method, request.url, headers=headers, content=content, timeout=patience
            )
        finally:
            if file:
                file.close()


async def _pieces(file: IO[bytes], request: Request) -> AsyncIterator[bytes]:
    """The pieces of the request's file. Raises OSError when it is not as long as announced."""
    left, piece = request.size, b"-"
    while piece:
        piece = await asyncio.to_thread(file.read, _PIECE)
        left -= len(piece)
        if left < 0 or (left and not piece):
            raise OSError(f"{request.file} has changed its size while it was sent. Hand it in again once it is whole.")
        yield piece


class AsyncClient:
    """The API, with one attribute for each area. Close it, or use it with `async with`."""

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
        """`base_url` and `key` default to JOINERY_URL and JOINERY_KEY; `timeout` is in seconds (inf: no end).

        `retries` is how often a call is repeated; `version` another dated version of the API than this package is
        made for; `transport` another httpx transport. Raises ValueError when address or key are missing.
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
        """Give the client its groups."""

    async def close(self) -> None:
        """Close its connections."""
        await self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
