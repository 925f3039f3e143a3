"""Authentication of requests, with a cache of credentials, and look-up in batches."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from time import monotonic
from typing import Generic, TypeVar

from domain.access.model import is_well_formed_bearer
from domain.access.usecases import AccessService, StoredCredential
from domain.kernel.errors import AuthenticationRequired, DomainError, Overloaded, Unavailable
from domain.platform.ports import SchemaCheck
from entrypoints.http.addresses import TrustedProxies
from entrypoints.http.checks import RequestState

T = TypeVar("T")

CACHE_SECONDS = 0.5
"""Seconds for which a looked-up credential is cached, so that a revocation takes effect within one second."""
MAX_CACHED_FOUND = 10_000
"""Maximum number of cached credentials that exist."""
MAX_CACHED_MISSING = 1_000
"""Maximum number of cached credentials that do not exist; guessed ones cannot evict valid ones."""

CacheEntry = tuple[T | None, float]
"""A value, or None for a digest without a value, and the time when the entry expires."""


class TtlCache(Generic[T]):
    """Cache of values by digest for CACHE_SECONDS, which also stores that a digest has no value."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._found_entries: dict[bytes, CacheEntry[T]] = {}
        self._missing_entries: dict[bytes, CacheEntry[T]] = {}
        self._future_by_digest: dict[bytes, asyncio.Future[T | None]] = {}

    def find_entry(self, digest: bytes) -> CacheEntry[T] | None:
        """Return the unexpired cache entry of the digest, or None."""
        entry = self._found_entries.get(digest) or self._missing_entries.get(digest)
        return entry if entry is not None and entry[1] > self._clock() else None

    def contains(self, digest: bytes) -> bool:
        """Return whether the cache contains a value of the digest, expired or not."""
        return digest in self._found_entries

    async def get_or_find(self, digest: bytes, find: Callable[[], Awaitable[T | None]]) -> T | None:
        """Look up the digest with `find`, cache the value, and return it, or None.

        Concurrent calls for the same digest share one call of `find`.
        """
        if (running_future := self._future_by_digest.get(digest)) is not None:
            return await asyncio.shield(running_future)
        future = asyncio.ensure_future(self._find(digest, find))
        self._future_by_digest[digest] = future
        future.add_done_callback(lambda _: self._future_by_digest.pop(digest, None))
        return await asyncio.shield(future)

    async def _find(self, digest: bytes, find: Callable[[], Awaitable[T | None]]) -> T | None:
        expires_at = self._clock() + CACHE_SECONDS
        value = await find()
        self._found_entries.pop(digest, None)
        self._missing_entries.pop(digest, None)
        entries, max_entries = (
            (self._missing_entries, MAX_CACHED_MISSING) if value is None else (self._found_entries, MAX_CACHED_FOUND)
        )
        while len(entries) >= max_entries:
            del entries[next(iter(entries))]
        entries[digest] = (value, expires_at)
        return value


MAX_STATEMENTS_PER_SECOND = 50
"""Maximum average number of database statements per second, and maximum number of statements in a burst."""
MAX_BATCH = 500
"""Maximum number of credentials that one statement looks up."""
MAX_PENDING_CREDENTIALS = 5_000
"""Maximum number of credentials that wait for their look-up; further requests get `overloaded`."""


class CredentialBatchLoader(Generic[T]):
    """Look-up of credentials in batches, with at most a fixed number of database statements per second.

    Args:
        find: Function that looks up one digest.
        find_all: Function that looks up several digests, and returns the values by digest without unknown digests.
    """

    def __init__(
        self,
        find: Callable[[bytes], Awaitable[T | None]],
        find_all: Callable[[Collection[bytes]], Awaitable[Mapping[bytes, T]]],
    ) -> None:
        self._find, self._find_all = find, find_all
        self._waiting: dict[bytes, asyncio.Future[T | None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._allowance, self._refilled_at = float(MAX_STATEMENTS_PER_SECOND), 0.0

    async def load(self, digest: bytes) -> T | None:
        """Look up the digest with the next batch; return its value, or None.

        Raises Overloaded if too many digests wait, or the error of the look-up.
        """
        future = self._waiting.get(digest)
        if future is None:
            if len(self._waiting) >= MAX_PENDING_CREDENTIALS:
                raise Overloaded(retry_after=2)
            future = self._waiting[digest] = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="credential-batches")
        return await asyncio.shield(future)

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._wait_for_statement()
                batch = {digest: self._waiting.pop(digest) for digest in list(self._waiting)[:MAX_BATCH]}
                await self._look_up(batch)
        finally:
            self._task = None

    async def _wait_for_statement(self) -> None:
        now = asyncio.get_running_loop().time()
        self._allowance = min(
            float(MAX_STATEMENTS_PER_SECOND), self._allowance + (now - self._refilled_at) * MAX_STATEMENTS_PER_SECOND
        )
        self._refilled_at = now
        if self._allowance < 1:
            await asyncio.sleep((1 - self._allowance) / MAX_STATEMENTS_PER_SECOND)
        self._allowance -= 1

    async def _look_up(self, batch: Mapping[bytes, asyncio.Future[T | None]]) -> None:
        results: dict[bytes, T | None]
        try:
            if len(batch) == 1:
                results = {digest: await self._find(digest) for digest in batch}
            else:
                results = dict(await self._find_all(batch.keys()))
        except Exception as error:
            for future in batch.values():
                future.set_exception(error)
                future.exception()  # marks the error as retrieved, as the request may have ended
        else:
            for digest, future in batch.items():
                future.set_result(results.get(digest))


API_AUDIENCE = "v1"
MCP_AUDIENCE = "mcp"
LOG = logging.getLogger("joinery.http")


def parse_bearer(header: str | None) -> str:
    """Return the bearer credential in an Authorization header (RFC 6750 §2.1). Raises AuthenticationRequired."""
    if header is None or header[:7].lower() != "bearer ":
        raise AuthenticationRequired
    credential = header[7:].strip()
    if not credential or not credential.isascii():
        raise AuthenticationRequired
    return credential


class RequestAuthentication:
    """Step that authenticates a request.

    Credentials are cached for CACHE_SECONDS, so a revocation may take effect with this delay. The expiry and the
    permitted networks of the credential are checked for each request.
    """

    def __init__(self, access: AccessService, proxies: TrustedProxies, schema: SchemaCheck | None = None) -> None:
        self._access = access
        self._schema = schema
        self._proxies = proxies
        self._credential_cache: TtlCache[StoredCredential] = TtlCache()
        self._batch_loader: CredentialBatchLoader[StoredCredential] = CredentialBatchLoader(
            access.find, access.find_all
        )

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Set the principal and the client's IP address in the state. Raises AuthenticationRequired."""
        request = state.request
        state.address = self._proxies.find_client(request.client_address, request.headers)
        if state.principal is not None:
            return None
        credential = parse_bearer(request.headers.get("authorization"))
        digest = state.credential_digest = self._access.compute_digest(credential)
        entry = self._credential_cache.find_entry(digest)
        if entry is None:
            if not is_well_formed_bearer(credential):
                raise AuthenticationRequired
            return self._load_principal(state, digest)
        self._set_principal(state, entry[0])
        return None

    def _set_principal(self, state: RequestState, stored_credential: StoredCredential | None) -> None:
        principal = self._access.verify(stored_credential, state.address, state.now)
        if principal.audience not in (None, MCP_AUDIENCE if state.channel == MCP_AUDIENCE else API_AUDIENCE):
            raise AuthenticationRequired  # the token's audience is the other edge (RFC 8707)
        state.principal = state.caller = principal if state.channel is None else replace(principal, via=state.channel)

    async def _load_principal(self, state: RequestState, digest: bytes) -> None:
        stored_credential = await self._credential_cache.get_or_find(digest, lambda: self._find(digest))
        self._set_principal(state, stored_credential)

    async def _find(self, digest: bytes) -> StoredCredential | None:
        """Look up a credential; return None if it is unknown.

        Raises Unavailable if the look-up failed, or if the database schema belongs to another release.
        """
        try:
            was_cached = self._credential_cache.contains(digest)
            stored_credential = await (self._access.find(digest) if was_cached else self._batch_loader.load(digest))
        except DomainError:
            raise
        except Exception as error:
            LOG.exception("credential lookup failed")
            raise Unavailable("Credentials cannot be verified now. Try again later.") from error
        if stored_credential is None and self._schema is not None:
            await self._schema.require_compatible()  # row security of another release may hide existing rows
        return stored_credential
