"""The few requests that a mirror makes, each repeated as long as that may help."""

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import aiohttp
import msgspec

from entrypoints.mirror.errors import Gone, MirrorError, Refused

PATIENCE: Final = 120.0
"""Seconds for which a request is repeated that is refused for a while, unless the mirror runs for ever."""
_LONGEST_WAIT: Final = 30.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=120)
_FILE_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=120)
_GZIP: Final = 31
_PIECE: Final = 1 << 18


class Products(msgspec.Struct):
    """A page of products, each as its bytes stand in the answer."""

    data: list[msgspec.Raw]
    has_more: bool
    next_cursor: str | None = None


class Event(msgspec.Struct):
    """What a mirror looks at of an event."""

    type: str
    subject: str
    version: int
    data: dict[str, Any]


class Changes(msgspec.Struct):
    """A page of the change feed."""

    data: list[Event]
    next_cursor: str
    caught_up: bool


class Problem(msgspec.Struct):
    """Why something is refused."""

    code: str = "unknown"
    detail: str = ""


_PRODUCTS: Final = msgspec.json.Decoder(Products).decode
_CHANGES: Final = msgspec.json.Decoder(Changes).decode


@dataclass(frozen=True, slots=True)
class Api:
    """`patience` bounds in seconds how long a request is repeated that gets no answer; None: for ever. `say` is told when one is."""

    session: aiohttp.ClientSession
    files: aiohttp.ClientSession
    url: str
    patience: float | None
    say: Callable[[str], None]

    async def now(self) -> str:
        """The cursor behind the newest event."""
        return _CHANGES(await self._get("/v1/changes", {"cursor": "now", "limit": "1"})).next_cursor

    async def changes(self, cursor: str, wait: int) -> Changes:
        """What follows the cursor. Raises Refused (410 when that is kept no longer)."""
        return _CHANGES(await self._get("/v1/changes", {"cursor": cursor, "limit": "1000", "wait": str(wait)}))

    async def products(self, ids: list[str] | None = None) -> AsyncIterator[list[msgspec.Raw]]:
        """All products, or those with these ids (100 at most), page by page."""
        asked = {"limit": "100"} | ({"id": ",".join(ids)} if ids is not None else {})
        after: dict[str, str] = {}
        while True:
            page = _PRODUCTS(await self._get("/v1/products", asked | after))
            yield page.data
            if not page.has_more or page.next_cursor is None:
                return
            after = {"starting_after": page.next_cursor}

    async def start_export(self, key: str) -> str:
        """Ask for an export; under the same key the same one. Answers its id. Raises Refused."""
        answer = await self._asked("POST", "/v1/exports", {}, {"kind": "products"}, {"Idempotency-Key": key})
        return str(msgspec.json.decode(answer)["id"])

    async def export(self, id: str) -> Mapping[str, Any]:
        """How far an export is."""
        found: Mapping[str, Any] = msgspec.json.decode(await self._get(f"/v1/exports/{id}", {}))
        return found

    async def lines(self, url: str, digest: str) -> AsyncIterator[list[bytes]]:
        """The lines of an export's file, some at a time. Raises MirrorError at the end when it is not whole."""
        unpack, seen, rest = zlib.decompressobj(_GZIP), sha256(), b""
        try:
            async with self.files.get(url, timeout=_FILE_TIMEOUT) as answer:
                if answer.status != 200:
                    raise Gone(f"A file of the export cannot be downloaded ({answer.status}).")
                async for piece in answer.content.iter_chunked(_PIECE):
                    seen.update(piece)
                    *whole, rest = (rest + unpack.decompress(piece)).split(b"\n")
                    yield whole
        except (aiohttp.ClientError, TimeoutError, zlib.error) as error:
            raise MirrorError(f"The download of the export broke off ({error or type(error).__name__}).") from error
        if seen.hexdigest() != digest or rest:
            raise MirrorError("The export's file did not arrive whole.")

    async def small(self, url: str) -> bytes:
        """A small file, unpacked."""
        try:
            async with self.files.get(url, timeout=_TIMEOUT) as answer:
                if answer.status != 200:
                    raise Gone(f"A file of the export cannot be downloaded ({answer.status}).")
                return zlib.decompress(await answer.read(), _GZIP)
        except (aiohttp.ClientError, TimeoutError, zlib.error) as error:
            raise MirrorError(f"The download of the export broke off ({error or type(error).__name__}).") from error

    async def _get(self, path: str, query: Mapping[str, str]) -> bytes:
        return await self._asked("GET", path, query, None, {})

    async def _asked(
        self, method: str, path: str, query: Mapping[str, str], body: Any, headers: Mapping[str, str]
    ) -> bytes:
        began, wait = time.monotonic(), 0.5
        while True:
            why, after = "", 0.0
            try:
                address = self.url + path
                async with self.session.request(
                    method, address, params=query, json=body, headers=headers, timeout=_TIMEOUT, allow_redirects=False
                ) as answer:
                    content = await answer.read()
                    if answer.status < 300:
                        return content
                    why, after = _repeated(answer, content)
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                why = str(error) or type(error).__name__
            if self.patience is not None and time.monotonic() - began > self.patience:
                raise MirrorError(f"The service at {self.url} cannot be asked: {why}.")
            if wait > 1:  # once is nothing to speak of
                self.say(f"{path}: {why}; asking again")
            await asyncio.sleep(max(after, wait))
            wait = min(_LONGEST_WAIT, wait * 2)


def _repeated(answer: aiohttp.ClientResponse, content: bytes) -> tuple[str, float]:
    """Why the request is worth repeating, and after how many seconds. Raises Refused when it is not."""
    try:
        problem = msgspec.json.decode(content, type=Problem)
    except msgspec.MsgspecError:
        problem = Problem(detail=content[:200].decode("utf-8", "replace"))
    waits = answer.status == 429 and problem.code != "quota_exceeded"
    held = problem.code == "idempotency_request_in_progress"
    if not (waits or held or answer.status >= 500):
        raise Refused(answer.status, problem.code, problem.detail)
    said = answer.headers.get("Retry-After", "")
    return f"{answer.status} {problem.code}", min(_LONGEST_WAIT, float(said)) if said.isdecimal() else 0.0


@asynccontextmanager
async def connected(url: str, key: str, patience: float | None, say: Callable[[str], None]) -> AsyncIterator[Api]:
    """The service at that address, asked with that key; links to files are never shown it."""
    authorised = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession() as files, aiohttp.ClientSession(headers=authorised) as session:
        yield Api(session, files, url.rstrip("/"), patience, say)
