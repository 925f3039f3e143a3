"""Authentication: credentials are cached for half a second, unknown ones are looked up in batches, and each request is verified."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from time import monotonic
from typing import Generic, TypeVar

from domain.access.model import is_bearer
from domain.access.usecases import AccessService, Proof
from domain.kernel.errors import AuthenticationRequired, DomainError, Overloaded, Unavailable
from domain.platform.ports import SchemaCheck
from entrypoints.http.addresses import Proxies
from entrypoints.http.checks import RequestState

T = TypeVar("T")

LIFETIME = 0.5
"""Seconds from the look-up; a revocation takes effect within one second (docs/conventions.md#authentication)."""
MOST_FOUND = 10_000
MOST_MISSING = 1_000
"""Bounds, so that guessed credentials cannot fill the memory or evict valid ones."""

CacheEntry = tuple[T | None, float]


class TtlCache(Generic[T]):
    """Cache of look-ups by digest, including negative results; concurrent look-ups of one digest share one query."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._found_entries: dict[bytes, CacheEntry[T]] = {}
        self._missing_entries: dict[bytes, CacheEntry[T]] = {}
        self._pending: dict[bytes, asyncio.Future[T | None]] = {}

    def get(self, digest: bytes) -> CacheEntry[T] | None:
        """Return the unexpired entry, or None."""
        entry = self._found_entries.get(digest) or self._missing_entries.get(digest)
        return entry if entry is not None and entry[1] > self._clock() else None

    def has_seen(self, digest: bytes) -> bool:
        """Return whether a value is cached for the digest, expired or not."""
        return digest in self._found_entries

    async def ask(self, digest: bytes, find: Callable[[], Awaitable[T | None]]) -> T | None:
        """Return the result of `find`, which runs at most once at a time per digest."""
        if (running := self._pending.get(digest)) is not None:
            return await asyncio.shield(running)
        future = asyncio.ensure_future(self._find(digest, find))
        self._pending[digest] = future
        future.add_done_callback(lambda _: self._pending.pop(digest, None))
        return await asyncio.shield(future)

    async def _find(self, digest: bytes, find: Callable[[], Awaitable[T | None]]) -> T | None:
        until = self._clock() + LIFETIME
        answer = await find()
        self._found_entries.pop(digest, None)
        self._missing_entries.pop(digest, None)
        entries, most = (self._missing_entries, MOST_MISSING) if answer is None else (self._found_entries, MOST_FOUND)
        while len(entries) >= most:
            del entries[next(iter(entries))]
        entries[digest] = (answer, until)
        return answer


PACE = 50
"""Statements a second, after an initial burst of as many."""
AT_ONCE = 500
"""Maximum credentials in one statement."""
MOST_STRANGERS = 5_000
"""Maximum credentials that wait; further requests get `overloaded`."""


class Strangers(Generic[T]):
    """Batched look-up of unknown credentials: `find` looks up one digest, `find_all` several."""

    def __init__(
        self,
        find: Callable[[bytes], Awaitable[T | None]],
        find_all: Callable[[Collection[bytes]], Awaitable[Mapping[bytes, T]]],
    ) -> None:
        self._find, self._find_all = find, find_all
        self._waiting: dict[bytes, asyncio.Future[T | None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._allowance, self._refilled_at = float(PACE), 0.0

    async def ask(self, digest: bytes) -> T | None:
        """Look up the digest. Raises Overloaded, or the error of `find`."""
        answer = self._waiting.get(digest)
        if answer is None:
            if len(self._waiting) >= MOST_STRANGERS:
                raise Overloaded(retry_after=2)
            answer = self._waiting[digest] = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="credential-batches")
        return await asyncio.shield(answer)

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._wait_for_allowance()
                batch = {digest: self._waiting.pop(digest) for digest in list(self._waiting)[:AT_ONCE]}
                await self._look_up(batch)
        finally:
            self._task = None

    async def _wait_for_allowance(self) -> None:
        now = asyncio.get_running_loop().time()
        self._allowance = min(float(PACE), self._allowance + (now - self._refilled_at) * PACE)
        self._refilled_at = now
        if self._allowance < 1:
            await asyncio.sleep((1 - self._allowance) / PACE)
        self._allowance -= 1

    async def _look_up(self, batch: Mapping[bytes, asyncio.Future[T | None]]) -> None:
        results: dict[bytes, T | None]
        try:
            if len(batch) == 1:
                results = {digest: await self._find(digest) for digest in batch}
            else:
                results = dict(await self._find_all(batch.keys()))
        except Exception as error:
            for answer in batch.values():
                answer.set_exception(error)
                answer.exception()  # marks the error as retrieved, as the request may have ended
        else:
            for digest, answer in batch.items():
                answer.set_result(results.get(digest))


API = "v1"
MCP = "mcp"
LOG = logging.getLogger("joinery.http")


def bearer(header: str | None) -> str:
    """Return the credential of an Authorization header (RFC 6750 §2.1). Raises AuthenticationRequired."""
    if header is None or header[:7].lower() != "bearer ":
        raise AuthenticationRequired
    text = header[7:].strip()
    if not text or not text.isascii():
        raise AuthenticationRequired
    return text


class Authenticate:
    """Step that authenticates a request: a cached proof is verified again for each request."""

    def __init__(self, access: AccessService, proxies: Proxies, schema: SchemaCheck | None = None) -> None:
        self._access = access
        self._schema = schema
        self._proxies = proxies
        self._known: TtlCache[Proof] = TtlCache()
        self._batch_loader: Strangers[Proof] = Strangers(access.find, access.known)

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Set the principal and the client's address. Raises AuthenticationRequired."""
        request = state.request
        state.address = self._proxies.client(request.client, request.headers)
        if state.principal is not None:
            return None
        text = bearer(request.headers.get("authorization"))
        digest = state.credential = self._access.digest(text)
        entry = self._known.get(digest)
        if entry is None:
            if not is_bearer(text):
                raise AuthenticationRequired
            return self._ask(state, digest)
        self._accept(state, entry[0])
        return None

    def _accept(self, state: RequestState, proof: Proof | None) -> None:
        principal = self._access.judge(proof, state.address, state.now)
        if principal.audience not in (None, MCP if state.via == MCP else API):
            raise AuthenticationRequired  # the token's audience is the other edge (RFC 8707)
        state.principal = state.caller = principal if state.via is None else replace(principal, via=state.via)

    async def _ask(self, state: RequestState, digest: bytes) -> None:
        proof = await self._known.ask(digest, lambda: self._find(digest))
        self._accept(state, proof)

    async def _find(self, digest: bytes) -> Proof | None:
        """Look up a credential.

        Raises:
            Unavailable: The look-up failed or the database schema is another release's; the credential may be valid.

        """
        try:
            seen = self._known.has_seen(digest)
            proof = await (self._access.find(digest) if seen else self._batch_loader.ask(digest))
        except DomainError:
            raise
        except Exception as error:
            LOG.exception("credential lookup failed")
            raise Unavailable("Credentials cannot be verified at the moment.") from error
        if proof is None and self._schema is not None:
            await self._schema.require()  # row security of another release may hide existing rows
        return proof
