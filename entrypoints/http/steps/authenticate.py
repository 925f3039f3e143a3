"""Third step: who calls, asked of the store once per credential and half second. Every reason for not knowing gives the same 401."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, Generic, TypeVar

from domain.access.usecases import AccessService, Proof
from domain.kernel.errors import AuthenticationRequired
from entrypoints.http.addresses import Proxies
from entrypoints.http.request_state import RequestState


def bearer(header: str | None) -> str:
    """The credential of an Authorization header (RFC 6750 §2.1). Raises AuthenticationRequired."""
    if header is None or header[:7].lower() != "bearer ":
        raise AuthenticationRequired
    text = header[7:].strip()
    if not text or not text.isascii():
        raise AuthenticationRequired
    return text


class Authenticate:
    """Asks the store once per credential and half second; what it said is judged anew for each request."""

    def __init__(self, access: AccessService, proxies: Proxies) -> None:
        self._access = access
        self._proxies = proxies
        self._known: TtlCache[Proof] = TtlCache()

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Set the principal and the client's address. Raises AuthenticationRequired."""
        request = state.request
        state.address = self._proxies.client(request.client, request.headers)
        text = bearer(request.headers.get("authorization"))
        digest = state.credential = self._access.digest(text)
        entry = self._known.get(digest)
        if entry is None:
            return self._ask(state, text, digest)
        state.principal = self._access.judge(entry[0], state.address, state.now)
        return None

    async def _ask(self, state: RequestState, text: str, digest: bytes) -> None:
        proof = await self._known.ask(digest, lambda: self._access.find(text, digest))
        state.principal = self._access.judge(proof, state.address, state.now)


T = TypeVar("T")

LIFETIME: Final = 0.5
"""Seconds from the moment of asking; a revocation acts within one second (docs/conventions.md#authentication)."""
MOST_FOUND: Final = 10_000
MOST_MISSING: Final = 1_000
"""Bounds, so that guessed credentials cannot fill the memory or push the real ones out."""

Entry = tuple[T | None, float]


class TtlCache(Generic[T]):
    """What was found, or not, under a digest. Requests that ask at the same time ask once."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._found: dict[bytes, Entry[T]] = {}
        self._missing: dict[bytes, Entry[T]] = {}
        self._asking: dict[bytes, asyncio.Future[T | None]] = {}

    def get(self, digest: bytes) -> Entry[T] | None:
        """The remembered answer, or None when there is none in force."""
        entry = self._found.get(digest) or self._missing.get(digest)
        return entry if entry is not None and entry[1] > self._clock() else None

    async def ask(self, digest: bytes, find: Callable[[], Awaitable[T | None]]) -> T | None:
        """The answer of `find`, which is asked at most once at a time per digest."""
        if (running := self._asking.get(digest)) is not None:
            return await asyncio.shield(running)
        future = asyncio.ensure_future(self._find(digest, find))
        self._asking[digest] = future
        future.add_done_callback(lambda _: self._asking.pop(digest, None))
        return await asyncio.shield(future)

    async def _find(self, digest: bytes, find: Callable[[], Awaitable[T | None]]) -> T | None:
        until = self._clock() + LIFETIME
        answer = await find()
        self._forget(digest)
        kept, most = (self._missing, MOST_MISSING) if answer is None else (self._found, MOST_FOUND)
        while len(kept) >= most:
            del kept[next(iter(kept))]
        kept[digest] = (answer, until)
        return answer

    def _forget(self, digest: bytes) -> None:
        self._found.pop(digest, None)
        self._missing.pop(digest, None)
