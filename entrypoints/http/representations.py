"""Representations: their validators, gzip for those who ask for it (ADR 35), and files that anybody may read."""

import asyncio
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from hashlib import sha256
from threading import BoundedSemaphore
from typing import TypeVar

import msgspec
from isal import isal_zlib

from domain.kernel.errors import Overloaded
from entrypoints.http.exchange import HeaderList, Response

LEAST = 1024
"""Bytes from which on an answer is worth packing."""
INLINE = 256 << 10
"""Bytes up to which an answer is packed at once: some 0.2 ms. Larger ones are packed beside the event loop."""
LONGEST_CODINGS = 500
"""Characters of an Accept-Encoding that is looked at; browsers send 30."""
SUFFIX = "-gzip"
"""What the ETag of a packed answer has inside its quotes, behind that of the plain one."""
GZIP = (b"content-encoding", b"gzip")
_LEVEL = 1
_FORMAT = 31
"""zlib's number for a gzip header around the largest window."""
_ETAG = b"etag"
_NAMES = frozenset({"gzip", "x-gzip"})


LONGEST_TAGS = 4096
"""Characters of an If-None-Match that is looked through; a longer one matches nothing, which costs its sender a body."""
_TAG = re.compile(r'\s*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)')


def hash_of(body: bytes) -> str:
    """The strong validator of a body: 96 bits of SHA-256, which processors compute faster than any other."""
    return sha256(body).hexdigest()[:24]


def is_unchanged(if_none_match: str, etag: str) -> bool:
    """Whether the client's If-None-Match (RFC 9110 §13.1.2, weak comparison) names the ETag, plain or packed.

    Nonsense matches nothing.
    """
    if if_none_match == etag or if_none_match.strip() == "*":
        return True
    if len(if_none_match) > LONGEST_TAGS:
        return False
    try:
        return etag[1:-1] in {text.removesuffix(SUFFIX) for _, text in tags_of(if_none_match)}
    except ValueError:
        return False


def tags_of(header: str) -> list[tuple[bool, str]]:
    """The entity tags of a list as (weak, text). Raises ValueError when it is not one."""
    tags, at = [], 0
    while at < len(header):
        found = _TAG.match(header, at)
        if found is None:
            raise ValueError(header)
        tags.append((found[1] is not None, found[2]))
        at = found.end()
    return tags


def _quality(parameters: str) -> float:
    """The weight among a coding's parameters; 1 when there is none, 0 when it cannot be read."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            text = value.strip()
            return min(float(text), 1.0) if text.replace(".", "", 1).isdecimal() and text.isascii() else 0.0
    return 1.0


@lru_cache(maxsize=256)  # clients choose the text
def least_size(accept_encoding: str) -> int | None:
    """Return from how many bytes on an answer is packed by that Accept-Encoding: 1 when it may not go plain, None for never."""
    weights: dict[str, float] = {}
    for entry in accept_encoding.split(","):
        name, _, parameters = entry.partition(";")
        weights[name.strip().lower()] = _quality(parameters)
    others = weights.get("*")
    given = [weights[name] for name in _NAMES if name in weights]
    packed = max(given) if given else (others or 0.0)
    plain = weights.get("identity", 0.0 if others == 0 else None)
    if packed == 0 or (plain is not None and plain > packed):
        return None
    return 1 if plain == 0 else LEAST


def is_packed(accept_encoding: str | None, size: int) -> bool:
    """Whether a body of that many bytes is answered in gzip."""
    if accept_encoding is None or len(accept_encoding) > LONGEST_CODINGS:
        return False
    least = least_size(accept_encoding)
    return least is not None and size >= least


def packed(body: bytes) -> bytes:
    """The body in gzip; the same bytes for the same body."""
    made: bytes = isal_zlib.compress(body, _LEVEL, _FORMAT)
    return made


def tag_of(etag: str, *, gzip: bool) -> str:
    """The ETag of that form of the representation."""
    return f'{etag[:-1]}{SUFFIX}"' if gzip else etag


def put(response: Response, body: bytes) -> None:
    """Answer the packed body in place of the plain one."""
    response.body = body
    response.headers = [
        (name, tag_of(value.decode(), gzip=True).encode()) if name == _ETAG else (name, value)
        for name, value in response.headers
    ]
    response.headers.append(GZIP)


class PublicFile:
    """One file. `headers` are those beside the usual ones; one that `packs` is answered in gzip to whoever asks for it."""

    def __init__(self, kind: bytes, body: bytes, headers: HeaderList, *, packs: bool = False) -> None:
        self._kind, self._body, self._packs = kind, body, packs
        self._etag = f'"{hash_of(body)}"'
        self._headers: HeaderList = [
            (b"cache-control", b"public, max-age=300"),
            (b"x-content-type-options", b"nosniff"),
            *headers,
        ]
        if packs:
            self._headers.append((b"vary", b"Accept-Encoding"))

    @cached_property
    def _small(self) -> bytes:
        return packed(self._body)

    def answer(self, if_none_match: str = "", accept_encoding: str | None = None) -> Response:
        """The file; 304 for those who have it."""
        gzip = self._packs and is_packed(accept_encoding, len(self._body))
        if if_none_match and is_unchanged(if_none_match, self._etag):
            return Response(304, [*self._headers, (b"etag", tag_of(self._etag, gzip=gzip).encode())])
        length = str(len(self._small if gzip else self._body)).encode()
        own = [(b"content-type", self._kind), (b"etag", self._etag.encode()), (b"content-length", length)]
        answer = Response(200, [*own, *self._headers], self._body)
        if gzip:
            put(answer, self._small)
        return answer


OPEN: HeaderList = [(b"access-control-allow-origin", b"*")]
"""For files that programs of any website may read."""


GUIDE = "/docs/guides/oauth"
METADATA_PATH = "/.well-known/oauth-protected-resource"


def metadata_address(base_url: str, place: str = "") -> str:
    """Where the document of what is served at `place` stands (RFC 9728 §3.1)."""
    return base_url.rstrip("/") + METADATA_PATH + place


def resource_metadata(base_url: str, place: str = "", scopes: Sequence[str] = (), guide: str = GUIDE) -> PublicFile:
    """The document of what is served at `place`: the resource, who gives tokens for it, how they are sent, where that is described.

    `scopes` are what it needs at the least.
    """
    base = base_url.rstrip("/")
    document: dict[str, object] = {
        "resource": base + place,
        "authorization_servers": [base],
        "resource_name": "Joinery",
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{base}{guide}",
    }
    if scopes:
        document["scopes_supported"] = list(scopes)
    return PublicFile(b"application/json", msgspec.json.encode(document), OPEN)


T = TypeVar("T")

MOST_WAITING = 16
"""Pieces of work that are under way or wait; whoever comes then is told to come again."""


class OneThread:
    """Does one piece of work at a time, in the order in which they come."""

    def __init__(self, name: str, most: int = MOST_WAITING) -> None:
        self._executor = ThreadPoolExecutor(1, name)
        self._free = BoundedSemaphore(most)

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """What `work(*args)` answers. Raises Overloaded when too much waits already, else what `work` raises."""
        if not self._free.acquire(blocking=False):
            raise Overloaded(retry_after=1)
        try:
            done = self._executor.submit(work, *args)
        except BaseException:
            self._free.release()
            raise
        done.add_done_callback(lambda _: self._free.release())
        return await asyncio.wrap_future(done)
