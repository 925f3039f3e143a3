"""Representations: entity tags, gzip encoding (ADR 35), public files, and a single worker thread."""

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
"""Minimum size in bytes of a response that is compressed."""
INLINE = 256 << 10
"""Maximum bytes compressed on the event loop, in about 0.2 ms; larger bodies are compressed in a thread."""
LONGEST_CODINGS = 500
"""Maximum characters of an Accept-Encoding that is parsed; browsers send 30."""
SUFFIX = "-gzip"
"""Suffix inside the quotes of a compressed response's ETag."""
GZIP = (b"content-encoding", b"gzip")
_LEVEL = 1
_WINDOW_BITS = 31
"""zlib's window bits for the gzip format and the largest window."""
_ETAG = b"etag"
_GZIP_NAMES = frozenset({"gzip", "x-gzip"})


LONGEST_TAGS = 4096
"""Maximum characters of an If-None-Match that is parsed; a longer one matches nothing, at the cost of a full response."""
_TAG = re.compile(r'\s*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)')


def hash_of(body: bytes) -> str:
    """Return the strong validator of a body: 96 bits of SHA-256, which CPUs accelerate."""
    return sha256(body).hexdigest()[:24]


def is_unchanged(if_none_match: str, etag: str) -> bool:
    """Return whether If-None-Match (RFC 9110 §13.1.2, weak comparison) contains the ETag, compressed or not.

    A malformed header matches nothing.
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
    """Parse a list of entity tags into (weak, text). Raises ValueError if it is malformed."""
    tags, at = [], 0
    while at < len(header):
        found = _TAG.match(header, at)
        if found is None:
            raise ValueError(header)
        tags.append((found[1] is not None, found[2]))
        at = found.end()
    return tags


def _quality(parameters: str) -> float:
    """Return the weight among a coding's parameters; 1 if there is none, 0 if it is malformed."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            text = value.strip()
            return min(float(text), 1.0) if text.replace(".", "", 1).isdecimal() and text.isascii() else 0.0
    return 1.0


@lru_cache(maxsize=256)  # clients choose the text
def least_size(accept_encoding: str) -> int | None:
    """Return the minimum size in bytes from which Accept-Encoding means gzip: 1 if identity is excluded, None for never."""
    weights: dict[str, float] = {}
    for entry in accept_encoding.split(","):
        name, _, parameters = entry.partition(";")
        weights[name.strip().lower()] = _quality(parameters)
    others = weights.get("*")
    gzip_weights = [weights[name] for name in _GZIP_NAMES if name in weights]
    packed = max(gzip_weights) if gzip_weights else (others or 0.0)
    plain = weights.get("identity", 0.0 if others == 0 else None)
    if packed == 0 or (plain is not None and plain > packed):
        return None
    return 1 if plain == 0 else LEAST


def is_packed(accept_encoding: str | None, size: int) -> bool:
    """Return whether a body of `size` bytes is sent with gzip."""
    if accept_encoding is None or len(accept_encoding) > LONGEST_CODINGS:
        return False
    least = least_size(accept_encoding)
    return least is not None and size >= least


def packed(body: bytes) -> bytes:
    """Compress a body with gzip; deterministic."""
    made: bytes = isal_zlib.compress(body, _LEVEL, _WINDOW_BITS)
    return made


def tag_of(etag: str, *, gzip: bool) -> str:
    """Return the ETag of the representation with or without gzip."""
    return f'{etag[:-1]}{SUFFIX}"' if gzip else etag


def put(response: Response, body: bytes) -> None:
    """Replace the response's body by its compressed form and adjust the headers."""
    response.body = body
    response.headers = [
        (name, tag_of(value.decode(), gzip=True).encode()) if name == _ETAG else (name, value)
        for name, value in response.headers
    ]
    response.headers.append(GZIP)


class PublicFile:
    """One public file. `headers` are added to the usual ones; `packs` enables gzip."""

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
        """Return the file, or 304 if the client has it."""
        gzip = self._packs and is_packed(accept_encoding, len(self._body))
        if if_none_match and is_unchanged(if_none_match, self._etag):
            return Response(304, [*self._headers, (b"etag", tag_of(self._etag, gzip=gzip).encode())])
        length = str(len(self._small if gzip else self._body)).encode()
        own_headers = [(b"content-type", self._kind), (b"etag", self._etag.encode()), (b"content-length", length)]
        answer = Response(200, [*own_headers, *self._headers], self._body)
        if gzip:
            put(answer, self._small)
        return answer


OPEN: HeaderList = [(b"access-control-allow-origin", b"*")]
"""Header for files that scripts of any website may read."""


GUIDE = "/docs/guides/oauth"
METADATA_PATH = "/.well-known/oauth-protected-resource"


def metadata_address(base_url: str, place: str = "") -> str:
    """Return the URL of the metadata of the resource at `place` (RFC 9728 §3.1)."""
    return base_url.rstrip("/") + METADATA_PATH + place


def resource_metadata(base_url: str, place: str = "", scopes: Sequence[str] = (), guide: str = GUIDE) -> PublicFile:
    """Return the OAuth metadata of the resource at `place`: authorization servers, bearer methods and documentation.

    `scopes` are the minimum scopes that the resource needs.
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
"""Maximum tasks in progress or waiting; further ones get `overloaded`."""


class OneThread:
    """Executor that runs one task at a time, in order."""

    def __init__(self, name: str, most: int = MOST_WAITING) -> None:
        self._executor = ThreadPoolExecutor(1, name)
        self._free = BoundedSemaphore(most)

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """Return the result of `work(*args)`. Raises Overloaded if too many tasks wait, else the error of `work`."""
        if not self._free.acquire(blocking=False):
            raise Overloaded(retry_after=1)
        try:
            done = self._executor.submit(work, *args)
        except BaseException:
            self._free.release()
            raise
        done.add_done_callback(lambda _: self._free.release())
        return await asyncio.wrap_future(done)
